// Aborting, closing, watching, and not being in the way of the host's own end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { TaskforceGovernor } from 'taskforce-sidecar';

import {
  admission,
  BINARY,
  claimedTask,
  lead,
  openFake,
  openStore,
  RUN,
  temporaryFolder,
} from './support.mjs';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

/** Starts a program in a process of its own. */
function start(root, ...args) {
  const env = { ...process.env, TASKFORCE_BINARY: BINARY, TASKFORCE_HOME: root };
  const stdio = ['ignore', 'pipe', 'inherit'];
  return spawn(process.execPath, args, { cwd: PACKAGE, env, stdio });
}

/** Waits for the end of a program, and returns its output and its status. */
async function end(child) {
  const output = [];
  child.stdout.on('data', (chunk) => output.push(chunk));
  const [status] = await once(child, 'close');
  return { status, output: Buffer.concat(output).toString() };
}

const script = (code) => [
  '--input-type=module',
  '-e',
  `import { TaskforceGovernor, TaskforceStore } from 'taskforce-sidecar';${code}`,
];

test('a call that was aborted before it was made is not made', async (t) => {
  const store = openStore(t);
  const reason = new Error('changed my mind');
  await assert.rejects(store.ping({ signal: AbortSignal.abort(reason) }), (error) => {
    assert.equal(error.name, 'AbortError');
    assert.equal(error.code, 'E_CANCELLED');
    assert.equal(error.cause, reason);
    return true;
  });
  assert.equal(store.pid, undefined);
});

test('a call that waits for the start of the sidecar is aborted at once', async (t) => {
  const store = openFake(t, 'silent', { startTimeoutMs: 500 });
  const controller = new AbortController();
  const other = store.ping();
  const call = store.ping({ signal: controller.signal });
  controller.abort();
  await assert.rejects(call, { name: 'AbortError' });
  await assert.rejects(other, { code: 'E_SIDECAR_START' });
});

test('the sidecar answers a cancelled call, and that is what the caller gets', async (t) => {
  const received = new EventEmitter();
  const store = openFake(t, 'cancelled', { onLog: (line) => received.emit(line) });
  const controller = new AbortController();
  const first = store.ping({ signal: controller.signal });
  const second = store.discover({ signal: controller.signal });
  await once(received, 'received 2');
  controller.abort();
  await assert.rejects(first, { name: 'AbortError', code: 'E_CANCELLED' });
  assert.deepEqual(await second, { text: 'it had begun' });
});

test('an aborted admission either happened and says so, or did not happen', async (t) => {
  const store = openStore(t);
  const governor = new TaskforceGovernor(store);
  const task_id = await claimedTask(store, 'alice');
  process.kill(store.pid, 'SIGSTOP');
  const controller = new AbortController();
  const call = governor.reserve(admission(task_id), RUN, lead, { signal: controller.signal });
  controller.abort();
  process.kill(store.pid, 'SIGCONT');
  const outcome = await call.then(
    () => 'admitted',
    (error) => error.name,
  );
  const { active_total } = await governor.snapshot(RUN);
  assert.equal(outcome, active_total === 1 ? 'admitted' : 'AbortError');
});

test('close lets pending calls finish and waits for the exit', async (t) => {
  const store = openStore(t);
  const calls = Array.from({ length: 50 }, (_, i) =>
    store.task.open({ title: `task ${i}` }, RUN, lead),
  );
  const closing = store.close();
  await assert.rejects(store.ping(), { code: 'E_STORE_CLOSED' });
  const { pid } = store;
  await closing;
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  assert.equal(store.pid, undefined);
  const tasks = await Promise.all(calls);
  assert.deepEqual(
    tasks.map((task) => task.title),
    calls.map((_, i) => `task ${i}`),
  );
});

test('disposing of a store closes it', async (t) => {
  const store = openStore(t);
  await store.ping();
  await store[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
  await assert.rejects(store.ping(), { code: 'E_STORE_CLOSED' });
});

test('an idle sidecar does not keep the host alive, a pending call does', async (t) => {
  const root = temporaryFolder(t);
  const code = `
    const store = new TaskforceStore();
    store.ping().then(() => console.log('answered'));
  `;
  const { status, output } = await end(start(root, ...script(code)));
  assert.deepEqual({ status, output }, { status: 0, output: 'answered\n' });
});

test('a watch that is waited for keeps the host alive, another does not', async (t) => {
  const root = temporaryFolder(t);
  const code = `
    const store = new TaskforceStore();
    const governor = new TaskforceGovernor(store);
    const idle = governor.watch('some run');
    const waited = governor.watch('${RUN}');
    waited.next().then(({ value }) => console.log(value.runId));
    await store.ping();
    console.log('watching');
  `;
  const host = start(root, ...script(code));
  await once(host.stdout, 'data');
  const store = openStore(t, { root });
  await new TaskforceGovernor(store).reserve(admission(await claimedTask(store, 'a')), RUN, lead);
  assert.deepEqual(await end(host), { status: 0, output: `${RUN}\n` });
});

test('a watch reports the changes of other processes until it is ended', async (t) => {
  const root = temporaryFolder(t);
  const [watching, changing] = [openStore(t, { root }), openStore(t, { root })];
  const governor = new TaskforceGovernor(changing);
  const task_id = await claimedTask(changing, 'alice');
  const changes = new TaskforceGovernor(watching).watch(RUN);
  await watching.ping();

  const next = changes.next();
  const { reservation_id, generation } = await governor.reserve(admission(task_id), RUN, lead);
  assert.deepEqual(await next, { done: false, value: { runId: RUN } });
  const proof = { kind: 'never_started' };
  await governor.settle({ reservation_id, generation, proof }, RUN, lead);
  for await (const { runId } of changes) {
    assert.equal(runId, RUN);
    const { active_total } = await governor.snapshot(RUN);
    if (active_total === 0) break;
  }
  assert.deepEqual(await changes.next(), { done: true, value: undefined });
});

test('a watch survives its sidecar, and reports that it may have missed something', async (t) => {
  const store = openStore(t);
  const changes = new TaskforceGovernor(store).watch(RUN);
  await store.ping();
  const { pid } = store;
  process.kill(pid, 'SIGKILL');
  assert.equal((await changes.next()).value.runId, RUN);
  assert.notEqual(store.pid, pid);
});

test('aborting a watch and closing its store end it', async (t) => {
  const store = openStore(t);
  const governor = new TaskforceGovernor(store);
  const controller = new AbortController();
  const aborted = governor.watch(RUN, { signal: controller.signal }).next();
  const closed = governor.watch(RUN).next();
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await store.close();
  assert.deepEqual(await closed, { done: true, value: undefined });
  await assert.rejects(governor.watch(RUN).next(), { code: 'E_STORE_CLOSED' });
});

test('the example in the README runs', async (t) => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, code] = readme.match(/```js\n(.*?)\n```/s);
  const { status, output } = await end(
    start(temporaryFolder(t), '--input-type=module', '-e', code),
  );
  assert.deepEqual({ status, output }, { status: 0, output: 'working\ntask 1 is settled\n' });
});

test('the example host runs', async (t) => {
  const root = temporaryFolder(t);
  const { status, output } = await end(start(root, 'examples/host.mjs', root));
  assert.equal(status, 0, output);
  assert.match(output, /0 active, 0 holds/);
});
