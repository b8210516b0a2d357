import { interleave, median, numbers, perSecond } from '../measure.mjs';
import { HandWritten, PING, Pipe } from '../pipe.mjs';
import { row } from '../table.mjs';
import { inFlight } from '../workload.mjs';

const COUNTS = { 1: 4000, 64: 20_000 };

/** The pipe alone: the client and bare loops, against a bare loop over a child that only parses. */
export async function ping(bench) {
  const store = bench.store(bench.folder());
  await store.initialize();
  const hand = new HandWritten(bench, bench.binary, 'serve', '--root', bench.folder());
  const sidecar = new Pipe(bench, bench.binary, 'serve', '--root', bench.folder());
  const echo = new Pipe(bench, bench.rawbench, 'echo');
  const rows = [];
  for (const [key, count] of Object.entries(COUNTS)) {
    const depth = Number(key);
    const calls = (call) => () => perSecond(count, () => inFlight(depth, numbers(count), call));
    const rates = await interleave(bench.rounds, {
      client: calls(() => store.ping()),
      hand: calls(() => hand.call('ping', {})),
      sidecar: () => perSecond(count, () => sidecar.roundTrips(PING, count, depth)),
      echo: () => perSecond(count, () => echo.roundTrips(PING, count, depth)),
    });
    const compared = median(rates.echo);
    const what = `ping, ${depth} in flight`;
    const microseconds = (side) => 1e6 / median(rates[side]);
    const times = { measured: microseconds('client'), compared: microseconds('hand') };
    rows.push(
      row('ping', `${what}, client / hand-written loop`, 'µs', {
        ...times,
        ...(depth === 1 && { ratioAtMost: 1.3 }),
      }),
      row('ping', `${what}, by the client`, '1/s', { measured: median(rates.client), compared }),
      row('ping', `${what}, by a bare loop`, '1/s', { measured: median(rates.sidecar), compared }),
    );
  }
  return rows;
}
