// The helpers of docs/helpers.md, by the table that the clients share.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import {
  fileKey,
  openDecisions,
  TaskforceGovernor,
  withReservation,
  worktreeKeys,
} from 'taskforce-sidecar';
import { fold, foldPath } from '../dist/resources.js';

import { difference, fill } from './match.mjs';
import { openStore, temporaryFolder } from './support.mjs';

const TABLE = JSON.parse(
  readFileSync(new URL('../../testdata/helpers.json', import.meta.url), 'utf8'),
);

/** Lays out files and links in a folder of their own, and returns it with what `{root}` stands for. */
function layOut(t, tree) {
  const folder = temporaryFolder(t);
  const root = fileKey(folder).slice('file:'.length);
  for (const [path, content] of Object.entries(tree)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (typeof content === 'object') symlinkSync(content.link, join(folder, path));
    else writeFileSync(join(folder, path), content.replaceAll('{root}', root));
  }
  return { folder, root };
}

for (const { text, folded } of TABLE.fold) {
  test(`the name ${text} folds`, () => {
    assert.equal(fold(text), folded);
    assert.equal(fold(folded), folded);
  });
}

for (const { about, path, existing, folds, usual, key } of TABLE.folding) {
  test(`where ${about}, ${path} is ${key}`, () => {
    const parts = path.split('/').filter((part) => part !== '');
    const names = { usual, folds: (folder) => folds.includes(folder) };
    assert.equal(foldPath('', parts.slice(0, existing), parts.slice(existing), names), key);
  });
}

test('every path to a file leads to one key', (t) => {
  const { folder, root } = layOut(t, TABLE.files.tree);
  for (const { path, key } of TABLE.files.cases) {
    // Not join, which would take `..` for the parent of a link.
    assert.equal(fileKey(`${folder}/${path}`), key.replace('{root}', root), path);
  }
});

test('a relative path is taken from the working directory', () => {
  assert.equal(fileKey('some/file'), fileKey(join(process.cwd(), 'some/file')));
  assert.equal(fileKey('/'), 'file:/');
});

test('a worktree and its repository have keys of their own', (t) => {
  const { folder, root } = layOut(t, TABLE.worktrees.tree);
  for (const { path, error, ...keys } of TABLE.worktrees.cases) {
    const call = () => worktreeKeys(join(folder, path));
    if (error) {
      assert.throws(call, { code: error }, path);
    } else {
      const expected = Object.entries(keys).map(([name, key]) => [
        name,
        key.replace('{root}', root),
      ]);
      assert.deepEqual(call(), Object.fromEntries(expected), path);
    }
  }
});

test('the keys of a worktree are those that git itself would name', (t) => {
  const folder = temporaryFolder(t);
  const git = (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  git('init', '--quiet', 'main');
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.org'];
  git('-C', 'main', ...who, 'commit', '--quiet', '--allow-empty', '--message', 'empty');
  git('-C', 'main', 'worktree', 'add', '--quiet', '../side');
  for (const top of ['main', 'side']) {
    const path = (option) =>
      fileKey(git('-C', top, 'rev-parse', '--path-format=absolute', option)).slice('file:'.length);
    assert.deepEqual(worktreeKeys(join(folder, top, 'src')), {
      worktree: `worktree:${path('--show-toplevel')}`,
      repository: `repository:${path('--git-common-dir')}`,
    });
  }
});

for (const { about, snapshot, decisions } of TABLE.decisions) {
  test(`open decisions: ${about}`, () => {
    assert.deepEqual(openDecisions(snapshot), decisions);
  });
}

for (const { about, before, request, work, error, after } of TABLE.reservations) {
  test(`with a reservation: ${about}`, async (t) => {
    const store = openStore(t);
    const governor = new TaskforceGovernor(store);
    const names = new Map();
    for (const { call, params, result = '$any' } of before) {
      assert.equal(
        difference(result, await store.call(call, fill(params, names)), names),
        undefined,
      );
    }
    let runs = 0;
    const outcome = await withReservation(governor, request, (reservation) => {
      runs += 1;
      assert.equal(reservation.state, 'running');
      if (work.throws !== undefined) throw new Error(work.throws);
      return work.returns;
    }).catch((failure) => failure);
    assert.equal(runs, after.runs);
    if (error) assert.equal(difference(error, errorOf(outcome), names), undefined);
    const { reservations, audit } = await governor.snapshot(request.runId);
    const last = reservations.at(-1);
    if (!error) assert.deepEqual(outcome, last);
    assert.equal(last?.state ?? null, after.state);
    const actions = audit.map(({ action, details }) =>
      action === 'markUnknown' ? `${action}: ${details.reason}` : action,
    );
    assert.deepEqual(actions, after.audit);
  });
}

/** What the table says of an error. */
function errorOf({ code, message, details }) {
  return code ? { ...details } : { message };
}
