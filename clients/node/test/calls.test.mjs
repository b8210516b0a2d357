// Every method against the real sidecar: arguments, results, refusals, transactions.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createNativeGovernorAdapter, TaskforceError, TaskforceGovernor } from 'taskforce-sidecar';

import { admission, claimedTask, lead, openStore, RUN } from './support.mjs';

function open(t, options) {
  const store = openStore(t, options);
  return { store, governor: new TaskforceGovernor(store) };
}

/** Settles a reservation with proof. */
function settle(governor, { reservation_id, generation }) {
  const proof = {
    kind: 'terminal',
    outcome: 'succeeded',
    quiescent: true,
    evidence: 'seen to end',
  };
  return governor.settle({ reservation_id, generation, proof }, RUN, lead);
}

test('initialize tells what the sidecar is', async (t) => {
  const { store } = open(t);
  const server = await store.initialize();
  assert.equal(server.protocol, 1);
  assert.equal(server.engine.name, 'sqlite');
  assert.equal(server.pinned, null);
  assert.ok(server.capabilities.watch);
  assert.equal(typeof store.pid, 'number');
});

test('an execution goes from admission to settlement', async (t) => {
  const { store, governor } = open(t);
  const task_id = await claimedTask(store, 'alice');
  const input = admission(task_id, { mode: 'write', kind: 'new', resources: ['b', 'a\u2028'] });
  assert.equal((await governor.check(input, RUN, lead)).admissible, true);
  const reserved = await governor.reserve(input, RUN, lead);
  assert.equal(reserved.state, 'reserved');
  assert.deepEqual(reserved.resources, ['a\u2028', 'b']);
  const { reservation_id, generation } = reserved;
  const key = { reservation_id, generation };
  const bound = await governor.bind({ ...key, session_id: 'alice' }, RUN, lead);
  assert.equal(bound.state, 'running');
  const unknown = await governor.markUnknown({ ...key, reason: 'lost sight of it' }, RUN, lead);
  assert.equal(unknown.state, 'unknown');
  assert.equal((await settle(governor, reserved)).state, 'settled');

  const snapshot = await governor.snapshot(RUN);
  assert.equal(snapshot.active_total, 0);
  assert.equal(snapshot.created_total, 1);
  const actions = snapshot.audit.map((entry) => entry.action);
  assert.deepEqual(actions, ['reserve', 'bind', 'markUnknown', 'settle']);
  const page = await governor.history(RUN, 'audit', { limit: 3 });
  assert.equal(page.items.length, 3);
  const rest = await governor.history(RUN, 'audit', { after: page.next, limit: 3 });
  assert.deepEqual([...page.items, ...rest.items], snapshot.audit);
  assert.equal((await governor.summary(RUN)).used.created, 1);
  assert.equal((await governor.runs()).items[0].run_id, RUN);
});

test('tasks go from open to accepted, by way of a rejection', async (t) => {
  const { store } = open(t);
  const { task } = store;
  const worker = { role: 'worker', sessionId: 'alice' };
  const { task_id } = await task.open({ title: 'write', note: 'soon' }, RUN, worker);
  const claim = { task_id, owner: 'Alice', owner_session: 'alice' };
  assert.equal((await task.claim(claim, RUN, worker)).already, false);
  assert.equal((await task.claim(claim, RUN, worker)).already, true);
  await task.submit({ task_id }, RUN, worker);
  assert.equal((await task.reject({ task_id, reason: 'untested' }, RUN, lead)).reopened, false);
  await task.claim(claim, RUN, worker);
  await task.submit({ task_id, note: 'tested' }, RUN, worker);
  assert.equal((await task.accept({ task_id }, RUN, lead)).status, 'accepted');
  assert.equal((await task.get({ task_id }, RUN, worker)).evidence_generation, 1);
  const events = await task.history({ task_id }, RUN, lead);
  assert.equal(events.items.length, 7);
  const other = await task.open({ title: 'other' }, RUN, lead);
  await task.cancel({ task_id: other.task_id }, RUN, lead);
  const { items } = await task.list({ status: 'cancelled' }, RUN, lead);
  assert.deepEqual(
    items.map((item) => item.title),
    ['other'],
  );
});

test('a long call goes through whole, in both directions', async (t) => {
  const { store } = open(t);
  const title = 'a\u2028\u{1f680}\n'.repeat(200_000);
  const { task_id } = await store.task.open({ title }, RUN, lead);
  assert.equal((await store.task.get({ task_id }, RUN, lead)).title, title);
});

test('a budget refusal tells the limit and who uses it', async (t) => {
  const { store, governor } = open(t);
  for (const session of ['a', 'b']) {
    const task_id = await claimedTask(store, session);
    await governor.reserve(admission(task_id, { mode: 'write' }), RUN, lead);
  }
  const task_id = await claimedTask(store, 'c');
  const call = governor.reserve(admission(task_id, { mode: 'write' }), RUN, lead);
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof TaskforceError);
    assert.equal(error.name, 'TaskforceError');
    assert.equal(error.code, 'E_BUDGET_EXHAUSTED');
    assert.equal(error.retryable, false);
    const { limit, max, used, users } = error.details.budget;
    assert.deepEqual({ limit, max, used }, { limit: 'max_writers', max: 2, used: 2 });
    assert.deepEqual(
      users.map((user) => user.owner_session),
      ['a', 'b'],
    );
    return true;
  });
  const limits = await governor.extendBudget({ reason: 'a third', max_writers: 3 }, RUN, lead);
  assert.equal(limits.max_writers, 3);
  await governor.reserve(admission(task_id, { mode: 'write' }), RUN, lead);
});

test('a busy resource, a fence and a conflict tell what is in the way', async (t) => {
  const { store, governor } = open(t);
  const first = await claimedTask(store, 'a');
  const second = await claimedTask(store, 'b');
  const input = admission(first, { mode: 'write', resources: ['repo'] });
  const holding = await governor.reserve(input, RUN, lead);

  const busy = governor.reserve(admission(second, { resources: ['repo'] }), RUN, lead);
  await assert.rejects(busy, (error) => {
    assert.equal(error.code, 'E_RESOURCE_BUSY');
    const [holder] = error.details.holders;
    assert.equal(holder.execution.reservation_id, holding.reservation_id);
    return true;
  });
  const stale = governor.reserve(admission(second, { generation: 5 }), RUN, lead);
  await assert.rejects(stale, (error) => {
    assert.equal(error.code, 'E_GOVERNOR_FENCE');
    assert.deepEqual(error.details.fence, { fence: 'admission', expected: 5, current: 0 });
    return true;
  });
  const conflict = governor.reserve({ ...input, mode: 'read' }, RUN, lead);
  await assert.rejects(conflict, (error) => {
    assert.equal(error.code, 'E_GOVERNOR_CONFLICT');
    assert.equal(error.details.reason, 'operation_key');
    return true;
  });
  await assert.rejects(governor.reserve({ ...input, mode: 'own' }, RUN, lead), (error) => {
    assert.equal(error.code, 'E_GOVERNOR_CONFLICT');
    assert.equal(error.details.violations[0].pointer, '/input/mode');
    return true;
  });
  await assert.rejects(store.task.get({ task_id: 99 }, RUN, lead), { code: 'E_NOT_FOUND' });
});

test('a transaction takes effect whole or not at all', async (t) => {
  const { store, governor } = open(t);
  const task_id = await claimedTask(store, 'alice');
  const call = (method, input) => ({ method, params: { input, runId: RUN, authority: lead } });
  const { results } = await store.transaction([
    call('governor.reserve', admission(task_id)),
    call('task.open', { title: 'another' }),
  ]);
  assert.equal(results[0].state, 'reserved');
  assert.equal(results[1].title, 'another');
  const failing = store.transaction([
    call('task.open', { title: 'never to be seen' }),
    call('task.accept', { task_id }),
  ]);
  await assert.rejects(failing, (error) => {
    assert.equal(error.code, 'E_STATUS');
    assert.deepEqual(error.details.call, { index: 1, method: 'task.accept' });
    return true;
  });
  const { items } = await store.task.list({}, RUN, lead);
  assert.equal(items.length, 2);
  assert.equal((await governor.snapshot(RUN)).active_total, 1);
});

test('the native adapter is refused, with the blockers that the sidecar names', async (t) => {
  const { governor } = open(t);
  const answer = await governor.nativeAdapter().catch((error) => error);
  assert.equal(answer.code, 'E_SCHEDULER_CAPABILITY');
  assert.throws(
    () => createNativeGovernorAdapter({ force: true }),
    (error) => {
      assert.equal(error.code, 'E_SCHEDULER_CAPABILITY');
      assert.deepEqual(error.blockers, answer.blockers);
      return true;
    },
  );
  const codes = answer.blockers.map((blocker) => blocker.code);
  assert.deepEqual(codes, ['H01', 'H02', 'H03', 'H04', 'H05', 'H06']);
});

test('the sidecar publishes the document that the client was made from', async (t) => {
  const { store } = open(t);
  const { methods } = await store.discover();
  assert.ok(methods.some((method) => method.name === 'governor.reserve'));
});
