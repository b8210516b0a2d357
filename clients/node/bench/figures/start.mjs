import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { TaskforceGovernor } from '../../dist/index.js';
import { interleave, median, numbers } from '../measure.mjs';
import { MEMORY_SEEN, memory } from '../memory.mjs';
import { firstReply } from '../pipe.mjs';
import { missing, row } from '../table.mjs';
import { cycle, openTasks } from '../workload.mjs';

const INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocol":1}}\n';
const STARTS = 12;
const LANES = 64;
const REQUESTS = 10_000;

/** Figure 7: what a sidecar costs that does little. */
export async function start(bench) {
  const root = await bench.filled({ small: 10 });
  const sidecar = [bench.binary, ['serve', '--root', root]];
  const bare = [bench.rawbench, ['echo', join(root, 'taskforce.db')]];
  const times = await interleave(bench.rounds, {
    sidecar: () => medianStart(...sidecar),
    bare: () => medianStart(...bare),
  });
  return [
    row('7', 'spawn to first reply / bare program', 'ms', {
      measured: median(times.sidecar),
      compared: median(times.bare),
      ratioAtMost: 2,
    }),
    ...(await memoryOf(bench, root)),
    row('7', 'size of the binary', 'MiB', {
      measured: statSync(bench.binary).size / 2 ** 20,
      atMost: 16,
    }),
  ];
}

async function medianStart(command, args) {
  const times = [];
  for (const _ of numbers(STARTS)) times.push(await firstReply(command, args, INITIALIZE));
  return median(times);
}

async function memoryOf(bench, root) {
  if (!MEMORY_SEEN) return [missing('7', 'resident memory', 'needs /proc')];
  const store = bench.store(root);
  await store.initialize();
  await setTimeout(300); // what its start left running comes to rest
  const idle = memory(store.pid, 'VmRSS');
  const governor = new TaskforceGovernor(store);
  const tasks = await openTasks(store, 'busy', LANES);
  const cycles = Math.ceil(REQUESTS / 3 / LANES);
  const lane = async (task) => {
    for (const i of numbers(cycles)) await cycle(governor, task, i);
  };
  await Promise.all(tasks.map(lane));
  const used = memory(store.pid, 'VmRSS');
  return [
    row('7', 'resident memory, idle', 'MiB', { measured: idle, atMost: 20 }),
    row('7', 'resident memory after 10,000 requests', 'MiB', { measured: used, atMost: 40 }),
  ];
}
