// What becomes of calls when their sidecar dies.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  stop,
  temporaryFolder,
} from './support.mjs';

const SWALLOWING = fileURLToPath(new URL('./swallowing-sidecar.mjs', import.meta.url));

/** Stops the sidecar, so that it cannot answer, makes a call, and kills it. */
async function killDuring(store, call) {
  await stop(store);
  const promise = call();
  process.kill(store.pid, 'SIGKILL');
  return promise;
}

test('the next call starts a new sidecar', async (t) => {
  const store = openStore(t);
  const task_id = await claimedTask(store, 'alice');
  const { pid } = store;
  process.kill(pid, 'SIGKILL');
  assert.equal((await store.task.get({ task_id }, RUN, lead)).owner_session, 'alice');
  assert.notEqual(store.pid, pid);
});

test('an admission whose sidecar was killed is sent again and admitted once', async (t) => {
  const store = openStore(t);
  const governor = new TaskforceGovernor(store);
  const tasks = [];
  for (const session of ['a', 'b', 'c', 'd']) tasks.push(await claimedTask(store, session));
  const reservations = await killDuring(store, () =>
    Promise.all(tasks.map((task_id) => governor.reserve(admission(task_id), RUN, lead))),
  );
  const snapshot = await governor.snapshot(RUN);
  assert.deepEqual(snapshot.reservations, reservations);
  assert.equal(snapshot.audit.length, tasks.length);
});

test('an admission whose answer was lost after its commit is admitted once', async (t) => {
  const root = temporaryFolder(t);
  const marker = join(root, 'swallowed');
  const store = openStore(t, { root, binary: SWALLOWING, args: [BINARY, marker] });
  const governor = new TaskforceGovernor(store);
  const task_id = await claimedTask(store, 'alice');
  const reservation = await governor.reserve(admission(task_id, { kind: 'new' }), RUN, lead);

  const lost = JSON.parse(readFileSync(marker, 'utf8'));
  assert.deepEqual(reservation, lost.result, 'the first admission was durable');
  const snapshot = await governor.snapshot(RUN);
  assert.equal(snapshot.reservations.length, 1);
  assert.equal(snapshot.created_total, 1);
  assert.equal(snapshot.audit.length, 1);
});

test('a call that may not be repeated is lost, with an unknown outcome', async (t) => {
  const store = openStore(t);
  await store.ping();
  const call = killDuring(store, () => store.task.open({ title: 'once' }, RUN, lead));
  await assert.rejects(call, (error) => {
    assert.equal(error.code, 'E_SIDECAR_LOST');
    assert.equal(error.retryable, false);
    assert.equal(error.details.outcome, 'unknown');
    assert.match(error.message, /killed by SIGKILL/);
    return true;
  });
  const { items } = await store.task.list({}, RUN, lead);
  assert.deepEqual(items, []);
});

test('a call that was not yet sent goes to the next sidecar, whatever it is', async (t) => {
  const store = openStore(t);
  const starting = store.ping();
  const call = store.task.open({ title: 'once' }, RUN, lead);
  process.kill(store.pid, 'SIGKILL');
  await starting;
  assert.equal((await call).title, 'once');
  const { items } = await store.task.list({}, RUN, lead);
  assert.equal(items.length, 1);
});

test('an aborted call is not sent again', async (t) => {
  const store = openStore(t);
  await store.ping();
  const controller = new AbortController();
  const call = killDuring(store, () => {
    const promise = store.ping({ signal: controller.signal });
    controller.abort();
    return promise;
  });
  await assert.rejects(call, { code: 'E_SIDECAR_LOST' });
});

test('a call that was dropped after a sidecar was lost during it has an unknown outcome', async (t) => {
  const received = new EventEmitter();
  const marker = join(temporaryFolder(t), 'died');
  const args = [marker, 'dies-once'];
  const store = openFake(t, 'dies-once', { args, onLog: (line) => received.emit(line) });
  const controller = new AbortController();
  const call = store.ping({ signal: controller.signal });
  await once(received, 'received 1');
  controller.abort();
  await assert.rejects(call, (error) => {
    assert.equal(error.code, 'E_SIDECAR_LOST');
    assert.equal(error.details.outcome, 'unknown');
    return true;
  });
});
