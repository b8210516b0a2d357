// Where the client looks for the sidecar.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { temporaryFolder } from './support.mjs';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const PLATFORM = `@taskforce-sidecar/${process.platform}-${process.arch}`;

/** Writes an executable file and returns its path. */
function executable(...path) {
  const file = join(...path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, '');
  chmodSync(file, 0o755);
  return file;
}

/** Installs a copy of the client in a folder, where it sees only what is installed beside it. */
async function installClient(folder) {
  const home = join(folder, 'node_modules', 'taskforce-sidecar');
  cpSync(DIST, join(home, 'dist'), { recursive: true });
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  return import(pathToFileURL(join(home, 'dist', 'binary.js')).href);
}

test('the option, the variable, the package and PATH are tried in this order', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  const given = executable(folder, 'given', 'any-name');
  const named = executable(folder, 'named', 'any-name');
  const installed = executable(folder, 'node_modules', PLATFORM, 'bin', 'taskforce');
  const onPath = executable(folder, 'second', 'taskforce');
  const env = { PATH: [join(folder, 'first'), join(folder, 'second')].join(delimiter) };

  assert.equal(findBinary(given, { ...env, TASKFORCE_BINARY: named }), given);
  assert.equal(findBinary(undefined, { ...env, TASKFORCE_BINARY: named }), named);
  assert.equal(findBinary(undefined, env), installed);
  rmSync(join(folder, 'node_modules', PLATFORM), { recursive: true });
  assert.equal(findBinary(undefined, env), onPath);
});

test('the error lists every place that was tried', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  mkdirSync(join(folder, 'a', 'taskforce'), { recursive: true });
  executable(folder, 'b', 'taskforce');
  chmodSync(join(folder, 'b', 'taskforce'), 0o644);
  symlinkSync('nowhere', join(folder, 'taskforce'));
  const PATH = [join(folder, 'a'), join(folder, 'b'), folder].join(delimiter);
  assert.throws(() => findBinary(undefined, { PATH }), {
    code: 'E_BINARY_NOT_FOUND',
    message: [
      'no taskforce binary; tried',
      '  the `binary` option: not given',
      '  TASKFORCE_BINARY: not set',
      `  the package ${PLATFORM}: not installed`,
      `  ${join(folder, 'a', 'taskforce')}: not a file`,
      `  ${join(folder, 'b', 'taskforce')}: not executable`,
      `  ${join(folder, 'taskforce')}: not there`,
    ].join('\n'),
  });
});

test('a place that somebody named is not passed over in silence', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  const env = { PATH: join(executable(folder, 'taskforce'), '..'), TASKFORCE_BINARY: '/no/such' };
  assert.throws(() => findBinary('/no/given', env), {
    message: /`binary` option: \/no\/given: not/,
  });
  assert.throws(() => findBinary(undefined, env), { message: /TASKFORCE_BINARY: \/no\/such: not/ });
});
