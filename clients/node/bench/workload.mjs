// The requests that are measured. Every task is admitted once and a run has few tasks, so that no
// figure depends on how long it was measured; only figure 5 is about history.
import { numbers } from './measure.mjs';

/** As many as rawbench gives a run. */
export const RUN_TASKS = 50;

const FAR = 2 ** 40;

/** Limits that are out of the way. */
export const LIMITS = { max_active: FAR, max_writers: FAR, max_created: FAR, max_retries: FAR };

export const lead = { role: 'lead', sessionId: 'lead-session' };

/** Opens tasks in runs named after `name`, and returns what it takes to admit each of them. */
export async function openTasks(store, name, count) {
  const runs = numbers(Math.ceil(count / RUN_TASKS)).map((i) => {
    const tasks = Math.min(RUN_TASKS, count - i * RUN_TASKS);
    return openRun(store, `${name}-${i}`, tasks);
  });
  return (await Promise.all(runs)).flat();
}

async function openRun(store, runId, tasks) {
  const call = (method, input) => ({ method, params: { input, runId, authority: lead } });
  const extend = call('governor.extendBudget', { reason: 'benchmark', ...LIMITS });
  const opens = numbers(tasks).map((i) => call('task.open', { title: `task ${i}` }));
  const { results } = await store.transaction([extend, ...opens]);
  const work = results.slice(1).map(({ task_id }) => workOn(runId, task_id));
  const claims = work.map(({ task_id, session }) =>
    call('task.claim', { task_id, owner: 'worker', owner_session: session }),
  );
  await store.transaction(claims);
  return work;
}

/** What it takes to admit a task. */
export function workOn(runId, task_id) {
  return { runId, task_id, session: `session-${task_id}` };
}

export function reserve(governor, { runId, task_id }, generation = 0) {
  const input = {
    operation_key: `task ${task_id}, attempt ${generation + 1}`,
    task_id,
    generation,
    mode: 'write',
    kind: 'new',
    resources: [`repo:part-${task_id}`],
  };
  return governor.reserve(input, runId, lead);
}

/** Reserves, binds and settles. */
export async function cycle(governor, work, generation = 0) {
  const { runId, session } = work;
  const { reservation_id, generation: admitted } = await reserve(governor, work, generation);
  const admission = { reservation_id, generation: admitted };
  await governor.bind({ ...admission, session_id: session }, runId, lead);
  const proof = {
    kind: 'terminal',
    outcome: 'succeeded',
    quiescent: true,
    evidence: 'exit status 0',
  };
  await governor.settle({ ...admission, proof }, runId, lead);
}

/** Works on the items, so many at a time. */
export async function inFlight(depth, items, work) {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(numbers(depth).map(lane));
}
