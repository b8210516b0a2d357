import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

import type { WireError } from './errors.js';
import { LineSplitter } from './frames.js';

const KEPT_LOG_LINES = 50;
const EXIT_GRACE_MS = 5_000;

/** A message from the sidecar: a response if it has an id, a notification if it has a method. */
export interface Message {
  id?: number | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: WireError;
}

/** How a sidecar came to its end. */
export interface Ending {
  /** In words, with the end of its log. */
  reason: string;
  /** True if something outside killed it, so that another one may well live. */
  killed: boolean;
}

/** Who hears what a sidecar says. */
export interface Listener {
  message(message: Message): void;
  ended(ending: Ending): void;
  log?: ((line: string) => void) | undefined;
}

/** One process of `taskforce serve`, with its three pipes. */
export class Sidecar {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #listener: Listener;
  readonly #logTail: string[] = [];
  readonly #closed: Promise<void>;
  #dropped: string | undefined;
  #held = true;

  constructor(path: string, args: readonly string[], env: NodeJS.ProcessEnv, listener: Listener) {
    this.#listener = listener;
    this.#child = spawn(path, args, { env, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
    this.#readLines(this.#child.stdout, (line) => this.#onLine(line));
    // An unread stderr would fill its pipe: it is read whether anybody listens or not.
    const log = this.#readLines(this.#child.stderr, (line) => this.#onLog(line));
    this.#child.stderr.on('end', () => this.#onLog(log.rest()));
    // Writing to a process that is gone fails here too; its end is reported by `close`.
    this.#child.stdin.on('error', () => {});
    this.#child.on('error', (error) => {
      this.#dropped ??= `could not be started: ${error.message}`;
    });
    this.#closed = new Promise((resolve) => {
      this.#child.on('close', (status, signal) => {
        resolve();
        listener.ended(this.#ending(status, signal));
      });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a frame, together with the others of this turn: what arrives at once shares a commit. */
  send(frame: string): void {
    const { stdin } = this.#child;
    if (stdin.writableCorked === 0) {
      stdin.cork();
      process.nextTick(() => stdin.uncork());
    }
    stdin.write(frame);
  }

  /** Says whether this process and its pipes keep the host's event loop alive. */
  hold(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    const { stdin, stdout, stderr } = this.#child;
    // The pipes of a child are sockets, though their types do not tell.
    for (const handle of [this.#child, stdin, stdout, stderr] as unknown as NodeJS.Timeout[]) {
      if (held) handle.ref();
      else handle.unref();
    }
  }

  /** Ends the sidecar's input, so that it finishes and exits, and waits for its end. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    const timer = setTimeout(() => this.drop('did not exit'), EXIT_GRACE_MS);
    await this.#closed;
    clearTimeout(timer);
  }

  /** Kills a sidecar that cannot be talked with. */
  drop(reason: string): void {
    this.#dropped ??= reason;
    this.#child.kill('SIGKILL');
  }

  #readLines(stream: NodeJS.ReadableStream, take: (line: string) => void): LineSplitter {
    const splitter = new LineSplitter();
    stream.on('data', (chunk: Buffer) => {
      for (const line of splitter.push(chunk)) take(line);
    });
    stream.on('error', () => {});
    return splitter;
  }

  #onLine(line: string): void {
    if (line.trim() === '') return;
    const message = parse(line);
    if (message) this.#listener.message(message);
    else this.drop(`wrote to stdout what is not a message: ${line.slice(0, 200)}`);
  }

  #onLog(line: string): void {
    if (line.trim() === '') return;
    this.#logTail.push(line);
    if (this.#logTail.length > KEPT_LOG_LINES) this.#logTail.shift();
    this.#listener.log?.(line);
  }

  #ending(status: number | null, signal: NodeJS.Signals | null): Ending {
    const how = this.#dropped ?? (signal ? `was killed by ${signal}` : `exited with ${status}`);
    const log = this.#logTail.map((line) => `\n  ${line}`).join('');
    return {
      reason: log === '' ? how : `${how}; the end of its log:${log}`,
      killed: this.#dropped === undefined && signal !== null,
    };
  }
}

/** Reads one line, or returns nothing if it is not a message of JSON-RPC. */
function parse(line: string): Message | undefined {
  try {
    const message = JSON.parse(line);
    const response = message.result !== undefined || typeof message.error?.code === 'number';
    const notification = message.id === undefined && typeof message.method === 'string';
    return message.jsonrpc === '2.0' && (response || notification) ? message : undefined;
  } catch {
    return undefined;
  }
}
