#!/usr/bin/env node
// The real sidecar, but the first answer to `governor.reserve` is swallowed and both processes die:
// the host sees a call whose effect is durable and whose answer is lost.
// Usage: swallowing-sidecar.mjs serve --root ROOT BINARY MARKER
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [binary, marker] = process.argv.slice(-2);
const args = process.argv.slice(2, -2);
const sidecar = spawn(binary, args, { stdio: ['pipe', 'pipe', 'inherit'] });
sidecar.on('exit', (status) => process.exit(status ?? 1));
const reserves = new Set();

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (method === 'governor.reserve') reserves.add(id);
    sidecar.stdin.write(`${line}\n`);
  })
  .on('close', () => sidecar.stdin.end());

createInterface({ input: sidecar.stdout }).on('line', (line) => {
  if (reserves.has(JSON.parse(line).id) && !existsSync(marker)) {
    writeFileSync(marker, line);
    sidecar.kill('SIGKILL');
    process.kill(process.pid, 'SIGKILL');
  }
  process.stdout.write(`${line}\n`);
});
