#!/usr/bin/env node
// The command `taskforce` of the npm package: becomes the binary as nearly as Node can.
import { spawn } from 'node:child_process';

import { findForCommand } from './binary.js';

function main(): void {
  // A TASKFORCE_BINARY that names this command must not make it start itself for ever.
  const { TASKFORCE_BINARY: _, ...env } = process.env;
  const child = spawn(findForCommand(process.env), process.argv.slice(2), {
    env,
    stdio: 'inherit',
  });
  // The terminal sends its signals to the child itself; those that others send to us are passed on.
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('error', (error) => fail(error));
  child.on('exit', (status, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else {
      process.exitCode = status ?? 1;
    }
  });
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

try {
  main();
} catch (error) {
  fail(error);
}
