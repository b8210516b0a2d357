// The transcripts that all clients replay, through the typed methods of this one.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { TaskforceError, TaskforceGovernor } from 'taskforce-sidecar';

import { difference, fill } from './match.mjs';
import { openStore, temporaryFolder } from './support.mjs';

const FOLDER = new URL('../../testdata/transcripts/', import.meta.url);

/** How the methods are called whose parameters are not `input`, `runId` and `authority`. */
const byHand = {
  initialize: ({ store }) => store.initialize(),
  ping: ({ store }) => store.ping(),
  'rpc.discover': ({ store }) => store.discover(),
  'store.transaction': ({ store }, { calls }) => store.transaction(calls),
  'governor.nativeAdapter': ({ governor }) => governor.nativeAdapter(),
  'governor.snapshot': ({ governor }, { runId }) => governor.snapshot(runId),
  'governor.summary': ({ governor }, { runId }) => governor.summary(runId),
  'governor.history': ({ governor }, { runId, view, ...page }) =>
    governor.history(runId, view, page),
  'governor.runs': ({ governor }, page) => governor.runs(page),
};

function call(client, method, params) {
  const special = byHand[method];
  if (special) return special(client, params);
  const [group, name] = method.split('.');
  const methods = group === 'task' ? client.store.task : client.governor;
  return methods[name](params.input, params.runId, params.authority);
}

class Replay {
  #t;
  #root;
  #client;
  #names = new Map();
  #watches = new Map();

  constructor(t) {
    this.#t = t;
    this.#root = temporaryFolder(t);
    this.#open([]);
  }

  #open(args) {
    const store = openStore(this.#t, { root: this.#root, args });
    this.#client = { store, governor: new TaskforceGovernor(store) };
  }

  async play(step) {
    if (step.call) return this.#call(step);
    if (step.restart) {
      await this.#client.store.close();
      this.#open(step.restart);
    } else if (step.watch) {
      this.#watches.set(step.watch, this.#client.governor.watch(step.watch));
    } else if (step.changed) {
      const { value } = await this.#watches.get(step.changed).next();
      assert.deepEqual(value, { runId: step.changed });
    } else {
      const watch = this.#watches.get(step.unwatch);
      await watch.return();
      assert.deepEqual(await watch.next(), { done: true, value: undefined });
    }
  }

  async #call({ call: method, params, result, error }) {
    const answer = await call(this.#client, method, fill(params, this.#names)).then(
      (value) => ({ result: value }),
      (refusal) => {
        if (!(refusal instanceof TaskforceError)) throw refusal;
        return { error: refusal.details };
      },
    );
    const want = error === undefined ? { result } : { error };
    assert.equal(difference(want, answer, this.#names), undefined);
  }
}

for (const file of readdirSync(FOLDER)) {
  test(`transcript ${file}`, async (t) => {
    const { steps } = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'));
    const replay = new Replay(t);
    for (const [i, step] of steps.entries()) {
      try {
        await replay.play(step);
      } catch (error) {
        error.message = `step ${i + 1}, ${JSON.stringify(step).slice(0, 200)}: ${error.message}`;
        throw error;
      }
    }
  });
}
