import { aborted } from './errors.js';
import type { ChangedParams } from './generated.js';

type Step = IteratorResult<ChangedParams, undefined>;

const DONE: Step = { done: true, value: undefined };

/**
 * The changes of one run, as an async iterator. A change says only that there is something new to
 * read, so changes that came while nobody waited are reported as one.
 */
export class Watch implements AsyncIterableIterator<ChangedParams> {
  readonly #runId: string;
  readonly #signal: AbortSignal | undefined;
  readonly #updated: (watch: Watch) => void;
  readonly #abort = () => this.end(aborted(this.#signal));
  #waiters: { resolve(step: Step): void; reject(error: Error): void }[] = [];
  #changed = false;
  #end: { error?: Error | undefined } | undefined;

  /** `updated` is called whenever the watch may have ended, or started or stopped waiting. */
  constructor(runId: string, signal: AbortSignal | undefined, updated: (watch: Watch) => void) {
    this.#runId = runId;
    this.#signal = signal;
    this.#updated = updated;
    signal?.addEventListener('abort', this.#abort);
    if (signal?.aborted) this.#abort();
  }

  /** Whether somebody waits for the next change. */
  get waiting(): boolean {
    return this.#waiters.length > 0;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  next(): Promise<Step> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.#serve();
    });
  }

  async return(): Promise<Step> {
    this.end();
    return DONE;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Reports a change to whoever waits, now or next. */
  notify(): void {
    this.#changed = true;
    this.#serve();
  }

  /** Ends the iteration, with an error that is reported once or without. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#serve();
  }

  #serve(): void {
    while (this.#changed || this.#end) {
      const waiter = this.#waiters.shift();
      if (!waiter) break;
      const error = this.#end?.error;
      if (this.#changed) {
        this.#changed = false;
        waiter.resolve({ done: false, value: { runId: this.#runId } });
      } else if (error) {
        this.#end = {};
        waiter.reject(error);
      } else {
        waiter.resolve(DONE);
      }
    }
    this.#updated(this);
  }
}

type Call = (method: 'governor.watch' | 'governor.unwatch', runId: string) => Promise<unknown>;

/** Every watch of a connection. The sidecar is asked once a run, however many watch it. */
export class Watches {
  readonly #call: Call;
  readonly #updated: () => void;
  readonly #byRun = new Map<string, Set<Watch>>();
  /** The runs that the sidecar of the moment has agreed to watch. */
  readonly #agreed = new Set<string>();

  constructor(call: Call, updated: () => void) {
    this.#call = call;
    this.#updated = updated;
  }

  /** Whether somebody waits for a change. */
  get waiting(): boolean {
    return this.#byRun.size > 0 && this.#all().some((watch) => watch.waiting);
  }

  /** Starts a watch. It misses nothing that calls made after this one could read. */
  open(runId: string, signal: AbortSignal | undefined): Watch {
    const watch = new Watch(runId, signal, (updated) => this.#onUpdate(runId, updated));
    if (watch.ended) return watch;
    const others = this.#byRun.get(runId);
    if (others) {
      others.add(watch);
    } else {
      this.#byRun.set(runId, new Set([watch]));
      void this.#subscribe(runId);
    }
    return watch;
  }

  notify(runId: string): void {
    for (const watch of this.#byRun.get(runId) ?? []) watch.notify();
  }

  /** Asks a new sidecar for what the lost one was watching. */
  renew(): void {
    const runs = [...this.#agreed];
    this.#agreed.clear();
    for (const runId of runs) {
      // What changed while nobody watched is not known: every watch is told to look.
      void this.#subscribe(runId).then(() => this.notify(runId));
    }
  }

  /** Ends every watch. */
  close(): void {
    for (const watch of this.#all()) watch.end();
  }

  #all(): Watch[] {
    return [...this.#byRun.values()].flatMap((watches) => [...watches]);
  }

  async #subscribe(runId: string): Promise<void> {
    const watches = this.#byRun.get(runId);
    try {
      await this.#call('governor.watch', runId);
      if (this.#byRun.has(runId)) this.#agreed.add(runId);
    } catch (error) {
      this.#byRun.delete(runId);
      for (const watch of watches ?? []) watch.end(error as Error);
    }
  }

  #onUpdate(runId: string, watch: Watch): void {
    const watches = this.#byRun.get(runId);
    if (watch.ended && watches?.delete(watch) && watches.size === 0) {
      this.#byRun.delete(runId);
      this.#agreed.delete(runId);
      // It fails only if the sidecar is gone, and its watch with it.
      this.#call('governor.unwatch', runId).catch(() => {});
    }
    this.#updated();
  }
}
