// The packages of a release, installed by npm from their archives.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { BINARY, temporaryFolder } from './support.mjs';

const PACK = fileURLToPath(new URL('../pack.mjs', import.meta.url));
const PLATFORM = `${process.platform}-${process.arch}`;

const PROGRAM = `
  import { TaskforceStore } from 'taskforce-sidecar';
  const store = new TaskforceStore();
  console.log((await store.initialize()).protocol);
`;

test('the installed client finds the installed binary', (t) => {
  const cwd = temporaryFolder(t);
  const { TASKFORCE_BINARY: _, ...rest } = process.env;
  const env = { ...rest, TASKFORCE_HOME: join(cwd, 'store') };
  const run = (file, ...args) => execFileSync(file, args, { cwd, env, encoding: 'utf8' });
  run(process.execPath, PACK, 'out', `${PLATFORM}=${BINARY}`);
  run('npm', 'pack', '--silent', `./out/${PLATFORM}`, './out/taskforce-sidecar');
  writeFileSync(join(cwd, 'package.json'), '{}');
  const archives = readdirSync(cwd).filter((name) => name.endsWith('.tgz'));
  run('npm', 'install', '--offline', '--silent', ...archives);
  assert.equal(run(process.execPath, '--input-type=module', '-e', PROGRAM), '1\n');
});
