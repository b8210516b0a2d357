import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TaskforceStore } from '../dist/index.js';

const built = (name) => fileURLToPath(new URL(`../../../bin/${name}`, import.meta.url));

/** What the figures share: the programs under test, and what has to be cleaned up after each. */
export class Bench {
  rounds;
  binary = process.env.TASKFORCE_BINARY ?? built('taskforce');
  rawbench = built('rawbench');
  #parent;
  #folders = [];
  #closers = [];

  constructor(rounds, parent = tmpdir()) {
    this.rounds = rounds;
    this.#parent = parent;
    process.on('exit', () => this.#removeFolders()); // whatever went wrong
    process.on('SIGINT', () => process.exit(1));
  }

  /** Makes a folder that is removed after the figure. */
  folder() {
    const folder = mkdtempSync(join(this.#parent, 'taskforce-bench-'));
    this.#folders.push(folder);
    return folder;
  }

  /** Opens a store over a sidecar of its own. */
  store(root) {
    const store = new TaskforceStore({ binary: this.binary, root });
    this.later(() => store.close());
    return store;
  }

  /** Runs `close` after the figure. */
  later(close) {
    this.#closers.push(close);
  }

  /** Runs rawbench to its end and returns what it printed. */
  raw(...args) {
    const output = execFileSync(this.rawbench, args.map(String), { encoding: 'utf8' });
    return output === '' ? undefined : JSON.parse(output);
  }

  /** Writes a store whose runs retain so many settled reservations, and lets a sidecar adopt it. */
  async filled(runs) {
    const root = this.folder();
    const counts = Object.entries(runs).map(([run, count]) => `${run}=${count}`);
    this.raw('fill', join(root, 'taskforce.db'), ...counts);
    const store = new TaskforceStore({ binary: this.binary, root });
    await store.initialize();
    await store.close();
    return root;
  }

  async clean() {
    for (const close of this.#closers.splice(0).reverse()) await close();
    this.#removeFolders();
  }

  #removeFolders() {
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
}
