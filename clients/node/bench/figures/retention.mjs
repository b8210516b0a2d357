import { TaskforceGovernor } from '../../dist/index.js';
import { interleave, median, medianMicroseconds, milliseconds } from '../measure.mjs';
import { row } from '../table.mjs';
import { lead, openTasks, RUN_TASKS, reserve, workOn } from '../workload.mjs';

const RETAINED = 100_000;
const ROUNDS_A_TASK = 4;

/** Figure 5: what history costs an admission, in stores of the same age otherwise. */
export async function retention(bench) {
  const root = await bench.filled({ retained: RETAINED });
  const full = new Sampler(bench.store(root), RETAINED / RUN_TASKS);
  await full.useTasksOf('retained');
  const empty = new Sampler(bench.store(bench.folder()), 0);
  await empty.openTasks();
  const { retained, none, first } = await interleave(bench.rounds, {
    retained: () => full.sample(),
    none: () => empty.sample(),
    first: () => firstReserve(bench, root, full),
  });
  return [
    row('5', 'reserve, 100,000 retained / none, warm', 'us', {
      measured: median(retained),
      compared: median(none),
      ratioAtMost: 1.1,
    }),
    row('5', 'first reserve of a process, 100,000 retained', 'ms', {
      measured: median(first),
      atMost: 20,
    }),
  ];
}

/** Reserves each of its tasks in turn; settling them again is not measured. */
class Sampler {
  #store;
  #generation;
  #tasks;

  constructor(store, generation) {
    this.#store = store;
    this.#generation = generation;
  }

  async useTasksOf(runId) {
    const { items } = await this.#store.task.list({ limit: RUN_TASKS }, runId, lead);
    this.#tasks = items.map(({ task_id }) => workOn(runId, task_id));
  }

  async openTasks() {
    this.#tasks = await openTasks(this.#store, 'empty', RUN_TASKS);
  }

  async sample() {
    const times = [];
    const governor = new TaskforceGovernor(this.#store);
    for (let i = 0; i < ROUNDS_A_TASK; i += 1) {
      const admitted = [];
      const once = async (task) => admitted.push(await reserve(governor, task, this.#generation));
      times.push(await medianMicroseconds(this.#tasks, once));
      await this.settle(governor, admitted);
    }
    return median(times);
  }

  /** Reserves the first task by another process, and returns the time in milliseconds. */
  async once(governor) {
    let first;
    const time = await milliseconds(async () => {
      first = await reserve(governor, this.#tasks[0], this.#generation);
    });
    const others = [];
    for (const task of this.#tasks.slice(1)) {
      others.push(await reserve(governor, task, this.#generation));
    }
    await this.settle(governor, [first, ...others]);
    return time;
  }

  /** Ends what was admitted; every task is then at the next generation. */
  async settle(governor, admitted) {
    const proof = { kind: 'never_started' };
    for (const { reservation_id, generation, run_id } of admitted) {
      await governor.settle({ reservation_id, generation, proof }, run_id, lead);
    }
    this.#generation += 1;
  }
}

async function firstReserve(bench, root, sampler) {
  const store = bench.store(root);
  await store.initialize();
  const time = await sampler.once(new TaskforceGovernor(store));
  await store.close();
  return time;
}
