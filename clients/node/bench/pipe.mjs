import { spawn } from 'node:child_process';
import { once } from 'node:events';

export const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';

/** A child that answers lines, and the least that a host can do to ask it. */
export class Pipe {
  #child;
  #rest = '';

  constructor(bench, command, ...args) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.on('exit', (status, signal) => {
      if (status !== 0) throw new Error(`${command} ended with ${status ?? signal}`);
    });
    bench.later(() => this.close());
  }

  get pid() {
    return this.#child.pid;
  }

  /** Sends a request so many times, `depth` of them in flight. */
  roundTrips(request, count, depth) {
    const { stdin, stdout } = this.#child;
    let sent = Math.min(depth, count);
    let received = 0;
    stdout.setEncoding('utf8');
    stdin.write(request.repeat(sent));
    return new Promise((resolve) => {
      const take = (chunk) => {
        const lines = (this.#rest + chunk).split('\n');
        this.#rest = lines.pop();
        for (const line of lines) {
          if (JSON.parse(line).error) throw new Error(`refused: ${line}`);
        }
        received += lines.length;
        const more = Math.min(lines.length, count - sent);
        sent += more;
        if (more > 0) stdin.write(request.repeat(more));
        if (received < count) return;
        stdout.off('data', take);
        resolve();
      };
      stdout.on('data', take);
    });
  }

  /** Sends a request and returns how many bytes the answer has, without looking at them. */
  async sizeOfAnswer(request) {
    const { stdin, stdout } = this.#child;
    stdin.write(request);
    let size = 0;
    for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (chunk.at(-1) === '\n'.charCodeAt(0)) return size;
    }
    throw new Error('the child ended before it answered');
  }

  async close() {
    if (this.#child.exitCode !== null) return;
    this.#child.stdin.end();
    await once(this.#child, 'exit');
  }
}

/**
 * What a host would write that has no client: requests with ids and parameters, replies matched with
 * promises; no types, no restart, no cancellation, no limits, no check of what the sidecar says.
 */
export class HandWritten {
  #child;
  #pending = new Map();
  #lastId = 0;

  constructor(bench, command, ...args) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let rest = '';
    this.#child.stdout.setEncoding('utf8').on('data', (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const line of lines) this.#receive(JSON.parse(line));
    });
    bench.later(() => this.close());
  }

  call(method, params) {
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      const request = { jsonrpc: '2.0', id: this.#lastId, method, params };
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  #receive({ id, result, error }) {
    const { resolve, reject } = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  async close() {
    this.#child.stdin.end();
    await once(this.#child, 'exit');
  }
}

/** Starts a program, asks it, and returns the time to its first answer in milliseconds. */
export async function firstReply(command, args, request) {
  const start = performance.now();
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.write(request);
  await once(child.stdout, 'data');
  const time = performance.now() - start;
  child.stdin.end();
  await once(child, 'close');
  return time;
}
