/**
 * Measures every side once a round, in turn, so that whatever else the machine does falls on all of
 * them alike. One round more goes before, unrecorded, for caches and compilers to warm up.
 * Returns the results of each side, one a round.
 */
export async function interleave(rounds, sides) {
  const entries = Object.entries(sides);
  const results = Object.fromEntries(entries.map(([name]) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, side] of entries) {
      const result = await side(round);
      if (round > 0) results[name].push(result);
    }
    entries.reverse(); // nobody always profits from going first
  }
  return results;
}

/** Returns how often a second something happened that happened `count` times during `work`. */
export async function perSecond(count, work) {
  return (count / (await milliseconds(work))) * 1000;
}

export async function milliseconds(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Returns the median time of `work`, in microseconds, over the items. */
export async function medianMicroseconds(items, work) {
  const times = [];
  for (const item of items) times.push(await milliseconds(() => work(item)));
  return median(times) * 1000;
}

export const median = (values) => percentile(values, 0.5);

export function percentile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)];
}

export const numbers = (count) => [...Array(count).keys()];
