// The document of `taskforce schema` makes a client by @open-rpc/generator: it compiles, and talks to the
// sidecar. docs/any-language.md tells what the generator needs.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const BINARY = process.env.TASKFORCE_BINARY ?? join(here, '../../../bin/taskforce');
const OUT = join(here, 'dist');
const require = createRequire(import.meta.url);
const program = (name) => join(here, 'node_modules/.bin', name);
const run = (file, ...args) =>
  execFileSync(file, args, { cwd: here, encoding: 'utf8', stdio: 'pipe' });

/**
 * The document as the generator needs it: method names that are identifiers, because it writes them into
 * a class, and something said of the items of every array.
 */
function documentForGenerator() {
  const anyItems = (_, value) =>
    value?.type === 'array' && value.items === undefined ? { ...value, items: true } : value;
  const document = JSON.parse(run(BINARY, 'schema'), anyItems);
  document.methods = document.methods
    .filter(({ name }) => !name.startsWith('$/'))
    .map((method) => ({ ...method, name: method.name.replace('.', '_') }));
  return document;
}

/** Generates and compiles the client, and returns its class. */
function generate() {
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT);
  writeFileSync(join(OUT, 'openrpc.json'), JSON.stringify(documentForGenerator()));
  const input = ['-d', join(OUT, 'openrpc.json'), '-o', OUT, '-t', 'client', '-l', 'typescript'];
  run(program('open-rpc-generator'), 'generate', ...input, '-n', 'taskforce');
  const source = join(OUT, 'client/typescript/src/index.ts');
  const options = ['--module', 'commonjs', '--target', 'es2020', '--esModuleInterop', '--strict'];
  run(program('tsc'), ...options, '--skipLibCheck', '--outDir', join(OUT, 'js'), source);
  writeFileSync(join(OUT, 'js/package.json'), '{"type":"commonjs"}');
  return require(join(OUT, 'js/index.js')).default;
}

/** A transport of the generated client's library over the pipes of a sidecar. */
function overPipes(sidecar) {
  const { Client, RequestManager } = require('@open-rpc/client-js');
  const { Transport } = require('@open-rpc/client-js/build/transports/Transport.js');
  class Pipes extends Transport {
    async connect() {
      createInterface({ input: sidecar.stdout }).on('line', (line) => {
        this.transportRequestManager.resolveResponse(line);
      });
    }
    async sendData(data) {
      const answer = this.transportRequestManager.addRequest(data, null);
      const request = { ...data.request, method: data.request.method.replace('_', '.') };
      sidecar.stdin.write(`${JSON.stringify(request)}\n`);
      return answer;
    }
    close() {}
  }
  return new Client(new RequestManager([new Pipes()]));
}

test('a generated client compiles and is answered', async (t) => {
  const Generated = generate();
  const root = mkdtempSync(join(tmpdir(), 'taskforce-openrpc-'));
  const sidecar = spawn(BINARY, ['serve', '--root', root], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => {
    sidecar.stdin.end();
    rmSync(root, { recursive: true, force: true });
  });
  const client = new Generated({ transport: { type: 'http', host: 'unused', port: 1 } });
  client.rpc = overPipes(sidecar);

  const lead = { role: 'lead', sessionId: 'root' };
  const task = await client.task_open({ title: 'generated' }, 'run-1', lead);
  assert.equal(task.status, 'open');
  const input = { operation_key: 'a', task_id: task.task_id, generation: 0, mode: 'read' };
  const admission = { ...input, kind: 'new', resources: ['docs'] };
  const reservation = await client.governor_reserve(admission, 'run-1', lead);
  assert.equal(reservation.state, 'reserved');
  assert.deepEqual((await client.governor_snapshot('run-1')).reservations, [reservation]);
  const stale = client.governor_reserve({ ...admission, operation_key: 'b' }, 'run-1', lead);
  await assert.rejects(stale, {
    data: {
      code: 'E_GOVERNOR_FENCE',
      retryable: false,
      fence: { fence: 'admission', expected: 0, current: 1 },
    },
  });
});
