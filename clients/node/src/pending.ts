import { aborted, failure } from './errors.js';
import { encode } from './frames.js';
import { type MethodName, RESENDS } from './generated.js';

/** How many sidecars a call may see die before it is given up. */
const MAX_LOSSES = 5;

/** One call from the moment it is made until its promise settles. */
export class PendingCall {
  readonly id: number;
  readonly method: MethodName;
  readonly signal: AbortSignal | undefined;
  /** What the sidecar reads. It is encoded at once: later changes to the parameters do not count. */
  readonly frame: string;
  readonly promise: Promise<unknown>;
  /** Whether the sidecar of the moment was given the call. */
  sent = false;
  resolve!: (result: unknown) => void;
  reject!: (error: Error) => void;
  /** Whether a sidecar was lost that was given the call: it may have taken effect. */
  #uncertain = false;
  #losses = 0;

  constructor(id: number, method: MethodName, params: unknown, signal?: AbortSignal) {
    this.id = id;
    this.method = method;
    this.signal = signal;
    this.frame = encode({ id, method, params });
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /**
   * Takes note that the sidecar is gone, and returns whether the call can go to the next one: it can
   * if it was never sent, or if sending it again cannot take effect twice.
   */
  survivesLoss(): boolean {
    const repeatable = RESENDS.has(this.method) && !this.signal?.aborted;
    const survives = !this.sent || repeatable;
    this.#uncertain ||= this.sent;
    this.#losses += 1;
    this.sent = false;
    return survives && this.#losses < MAX_LOSSES;
  }

  /** The error of a call whose sidecar is gone for good. */
  lost(reason: string): Error {
    const outcome = this.#uncertain ? 'unknown' : 'not_executed';
    return failure('E_SIDECAR_LOST', `the sidecar ${reason}`, { outcome });
  }

  /** The error of a call that was dropped because its caller aborted. */
  dropped(): Error {
    if (this.#uncertain) return this.lost('was lost before the call was aborted');
    return aborted(this.signal);
  }

  /** The notification that asks the sidecar to drop the call. */
  cancellation(): string {
    return encode({ method: '$/cancelRequest', params: { id: this.id } });
  }

  /** Calls `onAbort` when the caller aborts, for as long as the call is pending. */
  watchSignal(onAbort: () => void): void {
    const { signal } = this;
    if (!signal) return;
    if (signal.aborted) throw aborted(signal);
    signal.addEventListener('abort', onAbort, { once: true });
    const stop = () => signal.removeEventListener('abort', onAbort);
    this.promise.then(stop, stop);
  }
}
