import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { TaskforceStore } from 'taskforce-sidecar';

const execute = promisify(execFile);

/** The sidecar under test. */
export const BINARY =
  process.env.TASKFORCE_BINARY ?? fileURLToPath(new URL('../../../bin/taskforce', import.meta.url));

/** A sidecar that misbehaves as its last argument says. */
export const FAKE = fileURLToPath(new URL('./fake-sidecar.mjs', import.meta.url));

export const lead = { role: 'lead', sessionId: 'lead-session' };
export const RUN = 'run-1';

/** Makes a folder that goes away with the test. */
export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'taskforce-node-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a store of its own for a test, over the real sidecar unless told otherwise. */
export function openStore(t, options = {}) {
  if (!existsSync(BINARY)) throw new Error(`build the sidecar first: there is no ${BINARY}`);
  const store = new TaskforceStore({ binary: BINARY, root: temporaryFolder(t), ...options });
  t.after(() => store.close());
  return store;
}

/** Opens a store over a sidecar that misbehaves. */
export function openFake(t, behaviour, options = {}) {
  const store = new TaskforceStore({ binary: FAKE, args: [behaviour], ...options });
  t.after(() => store.close());
  return store;
}

/** Opens a task that belongs to a session. */
export async function claimedTask(store, session, runId = RUN) {
  const { task_id } = await store.task.open({ title: `work of ${session}` }, runId, lead);
  await store.task.claim({ task_id, owner: session, owner_session: session }, runId, lead);
  return task_id;
}

/** The input of a first admission of a task. */
export function admission(task_id, more = {}) {
  const operation_key = `operation of task ${task_id}`;
  const input = {
    operation_key,
    task_id,
    generation: 0,
    mode: 'read',
    kind: 'reuse',
    resources: [],
  };
  return { ...input, ...more };
}

/**
 * Stops the sidecar of a store, so that it cannot answer. The signal reaches its threads one after the
 * other: only when the process is seen to have stopped has the last of them.
 */
export async function stop(store) {
  process.kill(store.pid, 'SIGSTOP');
  for (let state = ''; !state.startsWith('T'); ) {
    state = (await execute('ps', ['-o', 'stat=', '-p', store.pid])).stdout;
  }
}
