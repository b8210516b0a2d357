import { isBuiltin } from 'node:module';
import { join } from 'node:path';

import { TaskforceGovernor } from '../../dist/index.js';
import { interleave, median, perSecond } from '../measure.mjs';
import { missing, row } from '../table.mjs';
import { cycle, inFlight, openTasks } from '../workload.mjs';

/** An in-process loop is as fast with any number in flight: it has one thread. */
const IN_PROCESS_COUNT = 400;

/** Figures 1 and 2: reserve, bind and settle against a governor inside the host. */
export async function cycles(bench, { depth, count, ratioAtLeast }) {
  const figure = depth === 1 ? '1' : '2';
  const what = `reserve+bind+settle, ${depth} in flight`;
  if (!isBuiltin('node:sqlite')) return [missing(figure, what, 'needs Node 22 or newer')];
  const { InProcessGovernor } = await import('../inprocess.mjs');
  const inProcess = new InProcessGovernor(join(bench.folder(), 'taskforce.db'));
  bench.later(() => inProcess.close());
  const store = bench.store(bench.folder());
  const governor = new TaskforceGovernor(store);
  const { sidecar, loop } = await interleave(bench.rounds, {
    sidecar: async (round) => {
      const tasks = await openTasks(store, `round-${round}`, count);
      return perSecond(count, () => inFlight(depth, tasks, (task) => cycle(governor, task)));
    },
    loop: (round) => {
      const tasks = inProcess.openTasks(`round-${round}`, IN_PROCESS_COUNT);
      return perSecond(tasks.length, () => inFlight(1, tasks, (task) => cycle(inProcess, task)));
    },
  });
  return [
    row(figure, what, 'cycles/s', {
      measured: median(sidecar),
      compared: median(loop),
      ratioAtLeast,
    }),
  ];
}
