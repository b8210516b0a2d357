// A host that dies in the middle of its work: it admits and starts a worker, and settles nothing.
// Usage: node crashing-host.mjs ROOT RUN TASK SESSION, with a pipe as file descriptor 3.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { TaskforceGovernor, TaskforceStore } from 'taskforce-sidecar';

const [root, run, task, session] = process.argv.slice(2);
const lead = { role: 'lead', sessionId: 'second-host' };

const store = new TaskforceStore({ root });
const governor = new TaskforceGovernor(store);
const { reservation_id, generation } = await governor.reserve(
  {
    operation_key: `task ${task}, first attempt`,
    task_id: Number(task),
    generation: 0,
    mode: 'read',
    kind: 'reuse',
    resources: ['repo:docs'],
  },
  run,
  lead,
);
await governor.bind({ reservation_id, generation, session_id: session }, run, lead);
const worker = spawn(
  process.execPath,
  [fileURLToPath(new URL('worker.mjs', import.meta.url)), session, task],
  // The worker inherits the pipe, so that the pipe ends only when the worker has ended, too.
  { stdio: ['ignore', 'inherit', 'inherit', 3, 'ipc'] },
);
const [message] = await once(worker, 'message');
console.log(`second host: ${message}; now I crash`);
process.kill(process.pid, 'SIGKILL');
