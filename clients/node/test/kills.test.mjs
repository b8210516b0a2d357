// Sidecars that are killed at random moments under load: no promise hangs, no effect is doubled.
// KILLS=1000 for the whole of it (`make kills-node`); SEED repeats the pauses between the kills.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { TaskforceGovernor } from 'taskforce-sidecar';

import { lead, openStore } from './support.mjs';

const KILLS = Number(process.env.KILLS ?? 50);
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const LANES = 8;
/** Far longer than a call takes, back-off and all. */
const HUNG_MS = 30_000;

/** A small generator of pseudo-random numbers from 0 to 1. */
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Makes a call until it is answered: what hosts do, because the calls in here can be repeated. */
async function insist(counts, call) {
  for (;;) {
    let timer;
    const hung = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('the call hung')), HUNG_MS);
    });
    try {
      counts.calls += 1;
      const answer = await Promise.race([call(), hung]);
      counts.answers += 1;
      return answer;
    } catch (error) {
      if (error.code !== 'E_SIDECAR_LOST') throw error;
      assert.ok(['unknown', 'not_executed'].includes(error.details.outcome));
      counts[error.details.outcome] += 1;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Runs tasks one after the other, each from its opening to its settlement, until told to stop. */
async function lane(name, store, run, counts, stopped) {
  const governor = new TaskforceGovernor(store);
  const worker = { role: 'worker', sessionId: name };
  const again = (call) => insist(counts, call);
  for (let n = 0; !stopped(); n += 1) {
    const title = `${name} ${n}`;
    const { task_id } = await openOnce(store, run, title, again);
    const claim = { task_id, owner: name, owner_session: name };
    await again(() => store.task.claim(claim, run, worker));
    const input = { task_id, operation_key: title, generation: 0, mode: 'write', kind: 'new' };
    const { reservation_id, generation } = await again(() =>
      governor.reserve({ ...input, resources: [name] }, run, lead),
    );
    const key = { reservation_id, generation };
    await again(() => governor.bind({ ...key, session_id: name }, run, worker));
    const proof = { kind: 'terminal', outcome: 'succeeded', quiescent: true, evidence: title };
    const settled = await again(() => governor.settle({ ...key, proof }, run, lead));
    assert.equal(settled.state, 'settled');
    counts.tasks += 1;
  }
}

/** Opens a task, which may not simply be repeated: after a loss, looks whether it was opened. */
async function openOnce(store, run, title, again) {
  try {
    return await store.task.open({ title }, run, lead);
  } catch (error) {
    if (error.code !== 'E_SIDECAR_LOST') throw error;
    for (let after = null; ; ) {
      const page = await again(() =>
        store.task.list({ ...(after && { after }), limit: 1000 }, run, lead),
      );
      const found = page.items.find((task) => task.title === title);
      if (found) return found;
      if (page.next === null) break;
      after = page.next;
    }
    return openOnce(store, run, title, again);
  }
}

/**
 * Kills one sidecar after the other: one in three at any moment of its start, the others at any moment
 * after it has answered, so that work goes on and the pauses between the starts stay short.
 */
async function killer(store, draw, counts) {
  let last;
  for (let kills = 0; kills < KILLS; ) {
    const { answers } = counts;
    await until(() => store.pid && store.pid !== last);
    if (draw() > 1 / 3) await until(() => counts.answers > answers);
    await sleep(draw() * 20);
    last = store.pid;
    if (last && process.kill(last, 'SIGKILL')) kills += 1;
  }
}

async function until(condition) {
  while (!condition()) await sleep(1);
}

test(`${KILLS} kills under load, seed ${SEED}`, async (t) => {
  const run = 'run of kills';
  const store = openStore(t);
  const limits = { max_active: LANES, max_writers: LANES, max_created: 1_000_000 };
  const governor = new TaskforceGovernor(store);
  await governor.extendBudget({ reason: 'a load', ...limits }, run, lead);
  const counts = { tasks: 0, calls: 0, answers: 0, unknown: 0, not_executed: 0 };
  let stop = false;
  const lanes = Array.from({ length: LANES }, (_, i) =>
    lane(`lane-${i}`, store, run, counts, () => stop),
  );
  const killed = killer(store, random(SEED), counts).finally(() => {
    stop = true;
  });
  const began = performance.now();
  await Promise.all([killed, ...lanes]);
  t.diagnostic(`${JSON.stringify(counts)} in ${Math.round(performance.now() - began)} ms`);

  const { reservations, audit, active_total, holds } = await governor.snapshot(run);
  assert.deepEqual({ active_total, holds }, { active_total: 0, holds: [] });
  assert.equal(reservations.length, counts.tasks);
  assert.equal(new Set(reservations.map(({ task_id }) => task_id)).size, counts.tasks);
  const transitions = audit.map(({ reservation_id, action }) => `${reservation_id} ${action}`);
  assert.equal(new Set(transitions).size, transitions.length, 'a transition took effect twice');
  assert.equal(transitions.length, 1 + 3 * counts.tasks);
  const { used } = await governor.summary(run);
  assert.equal(used.created, counts.tasks);
  const opened = await titles(store, run);
  assert.equal(new Set(opened).size, opened.length, 'a task was opened twice');
});

async function titles(store, run) {
  const found = [];
  for (let after = 0; after !== null; ) {
    const page = await store.task.list({ ...(after && { after }), limit: 1000 }, run, lead);
    found.push(...page.items.map((task) => task.title));
    after = page.next;
  }
  return found;
}
