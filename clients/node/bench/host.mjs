// One of the hosts of figure 6: a process with a sidecar of its own.
import { TaskforceGovernor, TaskforceStore } from '../dist/index.js';
import { cycle, openTasks } from './workload.mjs';

const [binary, root, name, milliseconds] = process.argv.slice(2);
const IN_FLIGHT = 8;

const store = new TaskforceStore({ binary, root });
const times = [];
let busy = 0;

/** A governor that takes the time of each call, and repeats one that finds the store busy. */
const timed = (call) => async (input, runId, authority) => {
  for (;;) {
    const start = performance.now();
    try {
      const result = await call(input, runId, authority);
      times.push(performance.now() - start);
      return result;
    } catch (error) {
      if (error.code !== 'E_STORE_BUSY') throw error;
      busy += 1;
    }
  }
};
const inner = new TaskforceGovernor(store);
const governor = {
  reserve: timed((...args) => inner.reserve(...args)),
  bind: timed((...args) => inner.bind(...args)),
  settle: timed((...args) => inner.settle(...args)),
};

const tasks = await openTasks(store, name, IN_FLIGHT);
process.send('ready');
process.once('message', async () => {
  const end = performance.now() + Number(milliseconds);
  const lane = async (task) => {
    for (let i = 0; performance.now() < end; i += 1) await cycle(governor, task, i);
  };
  await Promise.all(tasks.map(lane));
  process.send({ times, busy }, () => process.disconnect()); // not before all of it is sent
  await store.close();
});
