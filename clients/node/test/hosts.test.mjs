// Several clients at once: in one process, in threads, in forked processes.
import assert from 'node:assert/strict';
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

import { TaskforceGovernor } from 'taskforce-sidecar';

import {
  admission,
  BINARY,
  claimedTask,
  lead,
  openStore,
  RUN,
  temporaryFolder,
} from './support.mjs';

const execute = promisify(execFile);
const OPENER = fileURLToPath(new URL('./opener.mjs', import.meta.url));

/** Waits until a process runs no more. One whose thread has ended is reaped only with its parent. */
async function gone(pid) {
  for (;;) {
    const { stdout } = await execute('ps', ['-o', 'stat=', '-p', pid]).catch((error) => error);
    if (/^(Z|\s*$)/.test(stdout)) return;
  }
}

test('two clients in one process have a sidecar each and share the store', async (t) => {
  const root = temporaryFolder(t);
  const [one, two] = [openStore(t, { root }), openStore(t, { root })];
  const task_id = await claimedTask(one, 'alice');
  const admit = (store) => new TaskforceGovernor(store).reserve(admission(task_id), RUN, lead);
  const [first, second] = await Promise.all([admit(one), admit(two)]);
  assert.deepEqual(first, second);
  assert.notEqual(one.pid, two.pid);
  process.kill(one.pid, 'SIGKILL');
  await one.close();
  const { active_total, audit } = await new TaskforceGovernor(two).snapshot(RUN);
  assert.deepEqual(
    { active_total, transitions: audit.length },
    { active_total: 1, transitions: 1 },
  );
});

test('each thread opens a store of its own, and its end ends its sidecar', async (t) => {
  const root = temporaryFolder(t);
  const store = openStore(t, { root });
  await store.ping();
  const threads = ['a', 'b'].map(
    (session) => new Worker(OPENER, { workerData: { binary: BINARY, root, session } }),
  );
  const pids = await Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]));
  assert.equal(new Set([store.pid, ...pids]).size, 3);
  await Promise.all(threads.map((thread) => thread.terminate()));
  await Promise.all(pids.map(gone));
  const { active_total } = await new TaskforceGovernor(store).snapshot(RUN);
  assert.equal(active_total, 2, 'nothing is released by the end of a thread');
});

test('each forked process opens a store of its own, and its death ends its sidecar', async (t) => {
  const root = temporaryFolder(t);
  const store = openStore(t, { root });
  await store.ping();
  const child = fork(OPENER, [JSON.stringify({ binary: BINARY, root, session: 'a' })]);
  const [pid] = await once(child, 'message');
  assert.notEqual(pid, store.pid);
  child.kill('SIGKILL');
  await gone(pid);
  const { active_total } = await new TaskforceGovernor(store).snapshot(RUN);
  assert.equal(active_total, 1, 'nothing is released by the death of a process');
});
