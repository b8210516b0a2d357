import { createRequire } from 'node:module';

import { findBinary } from './binary.js';
import { failure, fromWire, TaskforceError } from './errors.js';
import { encode } from './frames.js';
import {
  type ChangedParams,
  type InitializeResult,
  type MethodName,
  PROTOCOL,
} from './generated.js';
import { PendingCall } from './pending.js';
import { type Ending, type Message, Sidecar } from './sidecar.js';
import { type Watch, Watches } from './watch.js';

const { name, version } = createRequire(import.meta.url)('../package.json');

const INITIALIZE_ID = 0;
const START_TIMEOUT_MS = 30_000;
const BACKOFF_MS = 25;
const MAX_BACKOFF_MS = 2_000;

/** How the sidecar is found and started. */
export interface StoreOptions {
  /** The folder of the store; the sidecar's own default if absent. */
  root?: string;
  /** The path of the sidecar's binary; it is looked for if absent. */
  binary?: string;
  /** More arguments of `taskforce serve`. */
  args?: readonly string[];
  /** The environment of the sidecar; that of this process if absent. */
  env?: NodeJS.ProcessEnv;
  /** Takes each line of the sidecar's log. */
  onLog?: (line: string) => void;
  /** How long the sidecar may take to answer `initialize`, in milliseconds; 30 seconds if absent. */
  startTimeoutMs?: number;
}

/**
 * Keeps one sidecar running for as long as there are calls for it. A call's way:
 *
 *     call -> PendingCall -> (start, initialize) -> Sidecar.send -> reply -> settle
 *                                 ^                     |
 *                                 +---- back-off <----- + sidecar lost: send again, or give up
 */
export class Connection {
  readonly #options: StoreOptions;
  readonly #calls = new Map<number, PendingCall>();
  readonly #watches = new Watches(
    (method, runId) => this.call(method, { runId }),
    () => this.#hold(),
  );
  #lastId = INITIALIZE_ID;
  #sidecar: Sidecar | undefined;
  #server: InitializeResult | undefined;
  #ready = false;
  #deadline: NodeJS.Timeout | undefined;
  #backoff: NodeJS.Timeout | undefined;
  /** How many sidecars were lost since one answered a call. */
  #losses = 0;
  #closed = false;
  #drained: Promise<void> | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  /** The process id of the sidecar that runs now. */
  get pid(): number | undefined {
    return this.#sidecar?.pid;
  }

  /** What the sidecar answered to `initialize`. */
  get server(): InitializeResult | undefined {
    return this.#server;
  }

  async call(method: MethodName, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#closed) throw failure('E_STORE_CLOSED', 'the store is closed');
    const call = new PendingCall(this.#lastId + 1, method, params, signal);
    call.watchSignal(() => this.#abort(call));
    this.#lastId = call.id;
    this.#calls.set(call.id, call);
    if (this.#ready) this.#send(call);
    else if (!this.#sidecar && !this.#backoff) this.#start();
    this.#hold();
    return call.promise;
  }

  watch(runId: string, signal?: AbortSignal): Watch {
    return this.#watches.open(runId, signal);
  }

  /** Refuses new calls, lets those that are pending finish, and ends the sidecar. */
  close(): Promise<void> {
    this.#closed = true;
    this.#drained ??= this.#drain();
    return this.#drained;
  }

  async #drain(): Promise<void> {
    this.#watches.close();
    await Promise.allSettled([...this.#calls.values()].map((call) => call.promise));
    this.#sidecar?.hold(true);
    await this.#sidecar?.end();
  }

  #start(): void {
    this.#backoff = undefined;
    if (this.#calls.size === 0) return;
    const { binary, root, args = [], env = process.env, onLog: log } = this.#options;
    const rootArgs = root === undefined ? [] : ['--root', root];
    try {
      const path = findBinary(binary, env);
      const sidecar: Sidecar = new Sidecar(path, ['serve', ...rootArgs, ...args], env, {
        message: (message) => this.#sidecar === sidecar && this.#onMessage(message, sidecar),
        ended: (ending) => this.#sidecar === sidecar && this.#onEnd(ending),
        log,
      });
      this.#sidecar = sidecar;
      this.#initialize(sidecar);
    } catch (error) {
      this.#failAll(error instanceof TaskforceError ? error : notStarted(error));
    }
  }

  #initialize(sidecar: Sidecar): void {
    const timeout = this.#options.startTimeoutMs ?? START_TIMEOUT_MS;
    const params = { protocol: PROTOCOL, client: { name, version } };
    sidecar.send(encode({ id: INITIALIZE_ID, method: 'initialize', params }));
    const drop = () => sidecar.drop(`did not answer initialize within ${timeout} ms`);
    this.#deadline = setTimeout(drop, timeout);
  }

  #onMessage(message: Message, sidecar: Sidecar): void {
    if (message.method === 'governor.changed') {
      const { runId } = (message.params ?? {}) as ChangedParams;
      this.#watches.notify(runId);
    } else if (message.id === INITIALIZE_ID) {
      this.#onInitialized(message, sidecar);
    } else if (message.id === null) {
      sidecar.drop(`could not read a call: ${message.error?.message}`);
    } else {
      this.#onReply(message);
    }
  }

  #onInitialized(message: Message, sidecar: Sidecar): void {
    clearTimeout(this.#deadline);
    const refusal = refusalOf(message);
    if (refusal) {
      this.#sidecar = undefined;
      void sidecar.end();
      this.#failAll(refusal);
      return;
    }
    this.#server = message.result as InitializeResult;
    this.#ready = true;
    for (const call of this.#calls.values()) this.#send(call);
  }

  #send(call: PendingCall): void {
    const limit = this.#server?.capabilities.max_frame_bytes ?? Number.POSITIVE_INFINITY;
    const size = Buffer.byteLength(call.frame) - '\n'.length;
    if (size > limit) {
      const text = `the call takes ${size} bytes, and the sidecar reads at most ${limit}`;
      this.#settle(call, () => call.reject(failure('E_INVALID_REQUEST', text)));
      return;
    }
    call.sent = true;
    this.#sidecar?.send(call.frame);
  }

  #onReply({ id, error, result }: Message): void {
    const call = this.#calls.get(id ?? INITIALIZE_ID);
    if (!call) return;
    this.#losses = 0;
    this.#settle(call, () => {
      if (error?.data?.code === 'E_CANCELLED') call.reject(call.dropped());
      else if (error) call.reject(fromWire(error));
      else call.resolve(result);
    });
  }

  #abort(call: PendingCall): void {
    if (call.sent) this.#sidecar?.send(call.cancellation());
    else this.#settle(call, () => call.reject(call.dropped()));
  }

  #settle(call: PendingCall, settle: () => void): void {
    this.#calls.delete(call.id);
    settle();
    this.#hold();
  }

  #onEnd(ending: Ending): void {
    const served = this.#ready;
    this.#sidecar = undefined;
    this.#ready = false;
    clearTimeout(this.#deadline);
    if (!served && !ending.killed) {
      this.#failAll(failure('E_SIDECAR_START', `the sidecar ${ending.reason}`));
      return;
    }
    this.#losses += 1;
    for (const call of this.#calls.values()) {
      if (!call.survivesLoss()) this.#settle(call, () => call.reject(call.lost(ending.reason)));
    }
    const delay = Math.min(BACKOFF_MS * 2 ** (this.#losses - 1), MAX_BACKOFF_MS);
    this.#backoff = setTimeout(() => this.#start(), delay);
    this.#watches.renew();
    this.#hold();
  }

  #failAll(error: Error): void {
    for (const call of this.#calls.values()) this.#settle(call, () => call.reject(error));
  }

  /** An idle sidecar does not keep the host's process alive; one that is waited for does. */
  #hold(): void {
    const held = this.#calls.size > 0 || this.#watches.waiting;
    this.#sidecar?.hold(held);
    if (held) this.#backoff?.ref();
    else this.#backoff?.unref();
  }
}

function notStarted(error: unknown): Error {
  return failure('E_SIDECAR_START', `the sidecar could not be started: ${error}`);
}

/** Returns why a sidecar that answered `initialize` cannot be used, or nothing if it can. */
function refusalOf({ error, result }: Message): Error | undefined {
  const answer = result as InitializeResult | null | undefined;
  if (answer?.protocol === PROTOCOL) return undefined;
  const supported = error?.data?.supported ?? (answer ? [answer.protocol] : []);
  if (error && supported.length === 0) return fromWire(error);
  const text = `the sidecar speaks protocol ${supported.join(', ')}, this client ${PROTOCOL}`;
  return failure('E_PROTOCOL', text, { supported });
}
