// A sidecar that is killed in each state of its life: no call hangs, none takes effect twice.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { TaskforceGovernor } from 'taskforce-sidecar';

import {
  admission,
  claimedTask,
  FAKE,
  lead,
  openFake,
  openStore,
  RUN,
  stop,
  temporaryFolder,
} from './support.mjs';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

const kill = (store) => process.kill(store.pid, 'SIGKILL');
const started = (store, before) =>
  new Promise((resolve) => {
    const look = () => (store.pid && store.pid !== before ? resolve() : setImmediate(look));
    look();
  });

/** Each brings the sidecar of a store into a state, and kills it there. */
const states = {
  async 'before it answered initialize'(store) {
    const call = store.ping();
    kill(store);
    await call;
  },
  async 'when it was idle'(store) {
    await store.ping();
    kill(store);
  },
  async 'with calls that it has not read'(store) {
    await store.ping();
    await stop(store);
    const calls = Array.from({ length: 100 }, () => store.ping());
    kill(store);
    await Promise.all(calls);
  },
  async 'while it answered'(store, governor) {
    const calls = Array.from({ length: 100 }, () => governor.snapshot(RUN));
    await calls[0];
    kill(store);
    await Promise.all(calls);
  },
  async 'twice, the second time while it started again'(store) {
    await store.ping();
    const { pid } = store;
    kill(store);
    const call = store.ping();
    await started(store, pid);
    kill(store);
    await call;
  },
  async 'while a watch was waited for'(store, governor) {
    const changes = governor.watch(RUN);
    await store.ping();
    const next = changes.next();
    kill(store);
    assert.deepEqual(await next, { done: false, value: { runId: RUN } });
    await changes.return();
  },
  async 'by a signal that it obeys'(store) {
    await store.ping();
    process.kill(store.pid, 'SIGTERM');
    // It answers what it has read and refuses what comes later, or the next one answers.
    await store.ping().catch((error) => assert.equal(error.code, 'E_SHUTTING_DOWN'));
  },
};

for (const [state, bring] of Object.entries(states)) {
  test(`a sidecar that is killed ${state}`, async (t) => {
    const store = openStore(t);
    const governor = new TaskforceGovernor(store);
    const task_id = await claimedTask(store, 'alice');
    const reservation = await governor.reserve(admission(task_id, { kind: 'new' }), RUN, lead);
    await bring(store, governor);
    const replay = await governor.reserve(admission(task_id, { kind: 'new' }), RUN, lead);
    assert.deepEqual(replay, reservation);
    const { created_total, audit } = await governor.snapshot(RUN);
    assert.deepEqual(
      { created_total, transitions: audit.length },
      { created_total: 1, transitions: 1 },
    );
  });
}

test('closing while the sidecar is lost lets pending calls finish', async (t) => {
  const store = openStore(t);
  await store.ping();
  await stop(store);
  const repeated = store.ping();
  const once = store.task.open({ title: 'once' }, RUN, lead);
  const lost = assert.rejects(once, { code: 'E_SIDECAR_LOST' });
  const closing = store.close();
  kill(store);
  assert.deepEqual(await repeated, {});
  await lost;
  await closing;
  assert.equal(store.pid, undefined);
});

test('closing twice waits for the same end', async (t) => {
  const store = openStore(t);
  await store.ping();
  const { pid } = store;
  await Promise.all([store.close(), store.close()]);
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('starting again backs off, up to a bound, and gives up', async (t) => {
  const starts = join(temporaryFolder(t), 'starts');
  const store = openFake(t, 'dies', { args: [starts, 'notes-start', 'dies'] });
  await assert.rejects(store.ping(), { code: 'E_SIDECAR_LOST' });
  const times = readFileSync(starts, 'utf8').trim().split('\n').map(Number);
  assert.equal(times.length, 5);
  const pauses = times.slice(1).map((time, i) => time - times[i]);
  // 25, 50, 100, 200 milliseconds at least; the start of a process adds to each.
  pauses.forEach((pause, i) => {
    assert.ok(pause >= 25 * 2 ** i, `pause ${i + 1} took ${pause} ms`);
  });
});

test('the back-off after a loss does not keep the host alive', async () => {
  const options = { binary: FAKE, args: ['dies'] };
  const program = `
    import { TaskforceStore } from 'taskforce-sidecar';
    await new TaskforceStore(${JSON.stringify(options)}).ping().catch(() => {});
    console.log(process.getActiveResourcesInfo().includes('Timeout'));
  `;
  const args = ['--input-type=module', '-e', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: PACKAGE });
  assert.equal(stdout, 'false\n');
});
