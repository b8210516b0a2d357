// Measures the sidecar through its pipe and prints one table; BENCHMARKS.md says how to read it.
//
//     node run.mjs [--only 1,2,ping] [--rounds 5] [--dir FOLDER]
//
// It needs bin/taskforce and bin/rawbench: run it by `make bench`.
import { parseArgs } from 'node:util';

import { Bench } from './bench.mjs';
import { cycles } from './figures/cycles.mjs';
import { ping } from './figures/ping.mjs';
import { latency, throughput } from './figures/reserves.mjs';
import { retention } from './figures/retention.mjs';
import { sharing } from './figures/sharing.mjs';
import { snapshot } from './figures/snapshot.mjs';
import { start } from './figures/start.mjs';
import { describeMachine, syncsPerSecond } from './machine.mjs';
import { header, line } from './table.mjs';

const FIGURES = {
  ping,
  1: (bench) => cycles(bench, { depth: 1, count: 400, ratioAtLeast: 0.75 }),
  2: (bench) => cycles(bench, { depth: 64, count: 2000, ratioAtLeast: 3 }),
  3: throughput,
  4: latency,
  5: retention,
  6: sharing,
  7: start,
  8: snapshot,
};

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '1,2,3,4,5,6,7,8,ping' },
    rounds: { type: 'string', default: '5' },
    dir: { type: 'string' },
  },
});
const chosen = values.only.split(',');
const rounds = Number(values.rounds);
for (const name of chosen) {
  if (!FIGURES[name]) throw new Error(`no figure ${name}; there are ${Object.keys(FIGURES)}`);
}
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a positive number');

const began = performance.now();
const bench = new Bench(rounds, values.dir);
try {
  for (const text of describeMachine(bench)) console.log(text);
  console.log(`\n${header()}`);
  for (const name of chosen) {
    const rows = await FIGURES[name](bench);
    for (const row of rows) console.log(line(row));
    await bench.clean();
  }
  console.log(`\nfdatasync: ${syncsPerSecond(bench.folder())}/s at the end`);
} finally {
  await bench.clean();
}
console.log(`${rounds} rounds, ${Math.round((performance.now() - began) / 1000)} s`);
