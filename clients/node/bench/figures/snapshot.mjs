import { TaskforceGovernor } from '../../dist/index.js';
import { interleave, median, medianMicroseconds, milliseconds, numbers } from '../measure.mjs';
import { MEMORY_SEEN, memory } from '../memory.mjs';
import { PING, Pipe } from '../pipe.mjs';
import { missing, row } from '../table.mjs';

const MIB = 2 ** 20;
const SMALL_READS = 100;
const SNAPSHOT =
  '{"jsonrpc":"2.0","id":1,"method":"governor.snapshot","params":{"runId":"retained"}}\n';

/** Figure 8: reading a long history, and reading beside it. */
export async function snapshot(bench) {
  const root = await bench.filled({ retained: 100_000, small: 10 });
  const alone = await bench.filled({ small: 10 });
  const big = await interleave(bench.rounds, {
    pipe: () => bigSnapshot(bench, root),
    client: () => bigByClient(bench, root),
  });
  const of = (member) => median(big.pipe.map((result) => result[member]));
  const rows = [
    row('8', 'snapshot of 100,000 reservations, JSON', 'MiB/s', {
      measured: of('rate'),
      atLeast: 60,
    }),
    row('8', 'the same, parsed by the client', 'MiB/s', {
      measured: of('size') / median(big.client),
    }),
    MEMORY_SEEN
      ? row('8', 'its peak memory / its size', 'MiB', {
          measured: of('peak'),
          compared: of('size'),
          ratioAtMost: 3,
        })
      : missing('8', 'its peak memory', 'needs /proc'),
  ];
  return [...rows, ...(await besides(bench, root, alone))];
}

/** Takes a snapshot by a process of its own, whose peak is then the snapshot's. */
async function bigSnapshot(bench, root) {
  const pipe = new Pipe(bench, bench.binary, 'serve', '--root', root);
  await pipe.sizeOfAnswer(PING); // its start is figure 7
  let bytes;
  const time = await milliseconds(async () => {
    bytes = await pipe.sizeOfAnswer(SNAPSHOT);
  });
  const peak = MEMORY_SEEN ? memory(pipe.pid, 'VmHWM') : 0;
  await pipe.close();
  return { size: bytes / MIB, rate: bytes / MIB / (time / 1000), peak };
}

/** Returns the seconds until a host has the snapshot as an object. */
async function bigByClient(bench, root) {
  const store = bench.store(root);
  await store.initialize();
  const governor = new TaskforceGovernor(store);
  const time = await milliseconds(() => governor.snapshot('retained'));
  await store.close();
  return time / 1000;
}

/** Reads a small run in the same file as the big one, and in a file of its own. */
async function besides(bench, root, alone) {
  const reader = (folder, method) => {
    const governor = new TaskforceGovernor(bench.store(folder));
    return () => medianMicroseconds(numbers(SMALL_READS), () => governor[method]('small'));
  };
  const rows = [];
  for (const method of ['snapshot', 'summary']) {
    const times = await interleave(bench.rounds, {
      beside: reader(root, method),
      alone: reader(alone, method),
    });
    rows.push(
      row('8', `${method} of a small run, beside it / alone`, 'us', {
        measured: median(times.beside),
        compared: median(times.alone),
        ratioAtMost: 1.5,
      }),
    );
  }
  return rows;
}
