// The command `taskforce` of the package.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { BINARY, temporaryFolder } from './support.mjs';

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const env = { ...process.env, TASKFORCE_BINARY: BINARY };
const run = promisify(execFile);

test('the command hands on arguments, output and status', async () => {
  const own = await run(process.execPath, [CLI, 'version'], { env });
  assert.deepEqual(own, await run(BINARY, ['version']));
  await assert.rejects(run(process.execPath, [CLI, 'no-such-command'], { env }), (error) => {
    assert.match(error.stderr, /no-such-command/);
    return error.code === 2;
  });
});

for (const [signal, status] of [
  ['SIGTERM', [0, null]],
  ['SIGKILL', [null, 'SIGKILL']],
]) {
  test(`the sidecar ends with its command on ${signal}`, async (t) => {
    const args = [CLI, 'serve', '--root', temporaryFolder(t)];
    const command = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    command.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    const [reply] = await once(command.stdout, 'data');
    assert.match(reply.toString(), /"id":1/);
    command.kill(signal);
    // The output ends when the sidecar itself is gone, and nobody has closed its input.
    assert.deepEqual(await once(command, 'close'), status);
  });
}

test('a command that names itself as the binary does not start itself for ever', async (t) => {
  const folder = temporaryFolder(t);
  cpSync(join(CLI, '..'), folder, { recursive: true });
  cpSync(join(CLI, '../../package.json'), join(folder, 'package.json'));
  const cli = join(folder, 'cli.js');
  chmodSync(cli, 0o755);
  const call = run(process.execPath, [cli, 'version'], { env: { ...env, TASKFORCE_BINARY: cli } });
  await assert.rejects(call, { stderr: /TASKFORCE_BINARY: not set/ });
});
