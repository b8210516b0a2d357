import { join } from 'node:path';

import { TaskforceGovernor } from '../../dist/index.js';
import { interleave, median, medianMicroseconds, numbers, perSecond } from '../measure.mjs';
import { PING, Pipe } from '../pipe.mjs';
import { row } from '../table.mjs';
import { inFlight, openTasks, reserve } from '../workload.mjs';

const DEPTH = 64;
const MANY = 3000;
const FEW = 400;
const ROUND_TRIPS = 2000;

/** Figure 3: how many reserves share the disk's time. */
export async function throughput(bench) {
  const { store, governor, file } = sides(bench);
  const { sidecar, raw } = await interleave(bench.rounds, {
    sidecar: async (round) => {
      const tasks = await openTasks(store, `round-${round}`, MANY);
      return perSecond(MANY, () => inFlight(DEPTH, tasks, (task) => reserve(governor, task)));
    },
    raw: (round) => bench.raw('reserves', file, `round-${round}`, MANY, DEPTH).perSecond,
  });
  return [
    row('3', `reserve, ${DEPTH} in flight / raw SQL, ${DEPTH} a commit`, '1/s', {
      measured: median(sidecar),
      compared: median(raw),
      ratioAtLeast: 1.3,
    }),
  ];
}

/** Figure 4: what the sidecar adds to the transaction and the pipe. */
export async function latency(bench) {
  const { store, governor, file } = sides(bench);
  const echo = new Pipe(bench, bench.rawbench, 'echo');
  const { sidecar, answer, raw, pipe } = await interleave(bench.rounds, {
    sidecar: async (round) => {
      const tasks = await openTasks(store, `round-${round}`, FEW);
      return medianMicroseconds(tasks, (task) => reserve(governor, task));
    },
    answer: async (round) => {
      const least = new Pipe(bench, bench.rawbench, 'answer', file, `answer-${round}`, String(FEW));
      const time = await medianMicroseconds(numbers(FEW), () => least.roundTrips(PING, 1, 1));
      await least.close();
      return time;
    },
    raw: (round) => bench.raw('reserves', file, `round-${round}`, FEW, 1).microseconds,
    pipe: () => medianMicroseconds(numbers(ROUND_TRIPS), () => echo.roundTrips(PING, 1, 1)),
  });
  return [
    row('4', 'reserve / raw transaction + empty round trip', 'us', {
      measured: median(sidecar),
      compared: median(raw) + median(pipe),
      ratioAtMost: 1.15,
    }),
    row('4', 'reserve / a bare loop that answers after the raw transaction', 'us', {
      measured: median(sidecar),
      compared: median(answer),
    }),
  ];
}

function sides(bench) {
  const store = bench.store(bench.folder());
  const file = join(bench.folder(), 'taskforce.db');
  return { store, governor: new TaskforceGovernor(store), file };
}
