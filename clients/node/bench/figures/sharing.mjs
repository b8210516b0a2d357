import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { interleave, median, numbers, percentile } from '../measure.mjs';
import { row } from '../table.mjs';

const HOST = fileURLToPath(new URL('../host.mjs', import.meta.url));
const HOSTS = 8;
const MILLISECONDS = 1500;

/** Figure 6: hosts, each a process with a sidecar of its own, that share a file. */
export async function sharing(bench) {
  const sides = { one: () => share(bench, 1), eight: () => share(bench, HOSTS) };
  const { one, eight } = await interleave(bench.rounds, sides);
  const of = (results, member) => median(results.map((result) => result[member]));
  return [
    row('6', `${HOSTS} sidecars on one file / one, 8 in flight each`, 'calls/s', {
      measured: of(eight, 'total'),
      compared: of(one, 'total'),
      ratioAtLeast: 0.7,
    }),
    row('6', 'slowest of them / fastest', 'calls/s', {
      measured: of(eight, 'slowest'),
      compared: of(eight, 'fastest'),
      ratioAtLeast: 0.9,
    }),
    row('6', 'E_STORE_BUSY in all rounds', 'errors', {
      measured: eight.reduce((sum, { busy }) => sum + busy, 0),
      atMost: 0,
    }),
    row('6', 'latency of a call, p99 / p50', 'ms', {
      measured: of(eight, 'p99'),
      compared: of(eight, 'p50'),
      ratioAtMost: 12,
    }),
  ];
}

/** Lets so many hosts work on a new file at once. */
async function share(bench, count) {
  const root = bench.folder();
  const hosts = [];
  for (const i of numbers(count)) {
    const host = new Host(bench.binary, root, `run-${i}`, MILLISECONDS);
    hosts.push(host);
    await host.next(); // it is ready; one by one, for each opens the file
  }
  const results = await Promise.all(hosts.map((host) => host.work()));
  await Promise.all(hosts.map((host) => host.exited));
  const rates = results.map(({ times }) => (times.length / MILLISECONDS) * 1000);
  const times = results.flatMap((result) => result.times);
  return {
    total: rates.reduce((sum, rate) => sum + rate, 0),
    slowest: Math.min(...rates),
    fastest: Math.max(...rates),
    busy: results.reduce((sum, { busy }) => sum + busy, 0),
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
  };
}

/** A process of host.mjs. */
class Host {
  #child;
  exited;

  constructor(...args) {
    this.#child = fork(HOST, args);
    this.exited = once(this.#child, 'exit');
  }

  work() {
    const report = this.next();
    this.#child.send('go');
    return report;
  }

  /** Returns what it says next. */
  async next() {
    const ended = this.exited.then(([status]) => {
      throw new Error(`a host ended with ${status}`);
    });
    const [message] = await Promise.race([once(this.#child, 'message'), ended]);
    return message;
  }
}
