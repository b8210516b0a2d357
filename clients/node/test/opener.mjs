// Opens a store in a thread or a process of its own, admits an execution, tells the sidecar's process id,
// and stays.
import { parentPort, workerData } from 'node:worker_threads';

import { TaskforceGovernor, TaskforceStore } from 'taskforce-sidecar';

import { admission, claimedTask, lead, RUN } from './support.mjs';

const { binary, root, session } = workerData ?? JSON.parse(process.argv[2]);
const store = new TaskforceStore({ binary, root });
const task_id = await claimedTask(store, session);
await new TaskforceGovernor(store).reserve(admission(task_id), RUN, lead);
if (parentPort) parentPort.postMessage(store.pid);
else process.send(store.pid);
setInterval(() => {}, 60_000);
