// A host that runs agents as child processes, and asks the governor before it starts each of them.
//
//     TASKFORCE_BINARY=path/to/taskforce node examples/host.mjs [ROOT]
//
// It uses a fresh store unless ROOT names one. The workers do nothing but live and end: what there is
// to see is how admission, holds, fences and settlement keep track of them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TaskforceGovernor, TaskforceStore } from 'taskforce-sidecar';

const root = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'taskforce-example-'));
const run = `run of ${new Date().toISOString()}`;
const lead = { role: 'lead', sessionId: 'first-host' };

const store = new TaskforceStore({ root });
const governor = new TaskforceGovernor(store);

const say = (text) => console.log(text);
const chapter = (title) => console.log(`\n== ${title}`);
const path = (file) => fileURLToPath(new URL(file, import.meta.url));

/** Opens a task and makes a session its owner. */
async function openTask(title, session) {
  const { task_id } = await store.task.open({ title }, run, lead);
  await store.task.claim({ task_id, owner: session, owner_session: session }, run, lead);
  say(`task ${task_id}: "${title}", owned by session ${session}`);
  return { task_id, session };
}

/** The input that asks for the first admission of a task. */
const first = ({ task_id }, more) => ({
  operation_key: `task ${task_id}, first attempt`,
  task_id,
  generation: 0,
  kind: 'new',
  mode: 'write',
  resources: [],
  ...more,
});

/** Binds an admission, and only then starts its worker: what is not bound has no effects. */
async function start(reservation, session) {
  const { reservation_id, generation, task_id } = reservation;
  await governor.bind({ reservation_id, generation, session_id: session }, run, lead);
  const worker = spawn(process.execPath, [path('worker.mjs'), session, task_id], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  worker.stdout.resume();
  const closed = once(worker, 'close');
  const [message] = await once(worker, 'message');
  say(`  bound, then started: ${message}`);
  return { reservation, worker, closed };
}

/** Settles an execution after its worker's end. */
async function settle({ reservation, worker, closed }, outcome) {
  // Only `close` will do: `exit` tells of the worker alone, `close` also that the last process that
  // inherited its output is gone. That is what this host calls quiescence.
  const [status, signal] = await closed;
  const evidence = `pid ${worker.pid} ended with ${signal ?? status}, its output is at its end`;
  await prove(reservation, outcome, evidence);
}

async function prove({ reservation_id, generation }, outcome, evidence) {
  const proof = { kind: 'terminal', outcome, quiescent: true, evidence };
  await governor.settle({ reservation_id, generation, proof }, run, lead);
  say(`  settled as ${outcome}: ${evidence}`);
}

/** Runs a call that must be refused, and returns the refusal. */
async function refused(call) {
  try {
    await call;
  } catch (error) {
    say(`  refused: ${error.code}: ${error.message}`);
    return error;
  }
  throw new Error('this should have been refused');
}

const initialized = await store.initialize();
say(`sidecar ${initialized.server.version}, protocol ${initialized.protocol}, store in ${root}`);

chapter('An admission, then a worker');
const parser = await openTask('write the parser', 'alice');
const tests = await openTask('write the tests', 'bob');
const audit = await openTask('audit the result', 'carol');
const notes = await openTask('write the release notes', 'dave');
const resources = ['repo:core'];
const alice = await start(await governor.reserve(first(parser, { resources }), run, lead), 'alice');

chapter('A busy resource: wait for its holder, then ask again');
const changes = governor.watch(run);
const asked = first(tests, { resources });
const busy = await refused(governor.reserve(asked, run, lead));
const holder = busy.details.holders[0].execution;
say(`  ${busy.details.holders[0].resource_key} is held by session ${holder.session_id}`);
alice.worker.send('finish');
await settle(alice, 'succeeded');
// The watch tells when to look; what to do is decided by asking again, with the same key.
await changes.next();
await changes.return();
const bob = await start(await governor.reserve(asked, run, lead), 'bob');

chapter('A replay, and a conflict');
const replay = await governor.reserve(asked, run, lead);
say(`  the same request again finds the same reservation, ${replay.state}: never a second start`);
const conflict = await refused(governor.reserve({ ...asked, mode: 'read' }, run, lead));
say(
  `  ${conflict.details.reason}: one key for two requests is a bug of the host, not to be retried`,
);

chapter('A fence: what the host believes is out of date');
bob.worker.send('finish');
await settle(bob, 'failed');
const again = { ...asked, operation_key: `task ${tests.task_id}, second attempt`, kind: 'retry' };
const fence = await refused(governor.reserve(again, run, lead));
const generation = fence.details.fence.current;
say(`  the task is at generation ${generation}: look at what happened, then ask with that`);
const retry = await governor.reserve({ ...again, generation }, run, lead);
const bobAgain = await start(retry, 'bob');

chapter('A budget: only a lead extends it, with a reason');
const carol = await start(
  await governor.reserve(first(audit, { mode: 'read' }), run, lead),
  'carol',
);
const budget = await refused(governor.reserve(first(notes), run, lead));
const { limit, used } = budget.details.budget;
const raise = { reason: 'the release notes are wanted, too', [limit]: used + 1 };
await governor.extendBudget(raise, run, lead);
say(`  ${limit} is ${used + 1} now; the same request is admitted`);
const dave = await governor.reserve(first(notes, { resources: ['repo:notes'] }), run, lead);
const never = { kind: 'never_started' };
const { reservation_id } = dave;
await governor.settle({ reservation_id, generation: dave.generation, proof: never }, run, lead);
say('  not needed after all: settled as never started, which is possible until it is bound');

chapter('A worker that is killed');
carol.worker.kill('SIGKILL');
await once(carol.worker, 'exit');
const unknown = { reason: 'the worker was killed; what it left behind is not known' };
await governor.markUnknown({ ...key(carol.reservation), ...unknown }, run, lead);
const { used: usage } = await governor.summary(run);
say(
  `  marked unknown: it still occupies its slot (${usage.active} active, ${usage.unknown} unknown)`,
);
await settle(carol, 'failed');

chapter('A sidecar that is killed');
process.kill(store.pid, 'SIGKILL');
const summary = await governor.summary(run);
say(`  started again by the next call; nothing is lost: ${summary.used.active} active`);

chapter('Another host that crashes');
const docs = await openTask('write the manual', 'erin');
const other = spawn(
  process.execPath,
  [path('crashing-host.mjs'), root, run, docs.task_id, docs.session],
  { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] },
);
const pipe = other.stdio[3].resume();
const pipeEnded = once(pipe, 'end');
const [, signal] = await once(other, 'exit');
say(`the second host was ended by ${signal}; what the store retains of the run:`);
const snapshot = await governor.snapshot(run);
const mine = new Set([bobAgain.reservation.reservation_id]);
for (const found of snapshot.reservations) {
  if (found.state === 'settled' || mine.has(found.reservation_id)) continue;
  say(`  task ${found.task_id} is ${found.state}, and its host is gone`);
  await governor.markUnknown({ ...key(found), reason: 'its host crashed' }, run, lead);
  await pipeEnded;
  await prove(found, 'cancelled', 'the pipe that its worker inherited is at its end');
}

chapter('The end');
bobAgain.worker.send('finish');
await settle(bobAgain, 'succeeded');
const { active_total, holds, audit: transitions } = await governor.snapshot(run);
say(`${active_total} active, ${holds.length} holds, ${transitions.length} transitions on record`);
await store.close();

function key({ reservation_id, generation }) {
  return { reservation_id, generation };
}
