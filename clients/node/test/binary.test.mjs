// Where the client looks for the sidecar.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { temporaryFolder } from './support.mjs';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const HERE = `${process.platform}-${process.arch}`;
const PLATFORM = `@taskforce-sidecar/${HERE}`;

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
  const onPath = executable(folder, 'second', 'taskforce');
  const env = { PATH: [join(folder, 'first'), join(folder, 'second')].join(delimiter) };

  assert.equal(findBinary(given, { ...env, TASKFORCE_BINARY: named }), given);
  assert.equal(findBinary(undefined, { ...env, TASKFORCE_BINARY: named }), named);
  assert.equal(findBinary(undefined, env), onPath);
  const installed = executable(folder, 'node_modules', PLATFORM, 'bin', 'taskforce');
  assert.equal(findBinary(undefined, env), realpathSync(installed));
});

test('the error lists every place that was tried, and the remedy', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  mkdirSync(join(folder, 'a', 'taskforce'), { recursive: true });
  executable(folder, 'b', 'taskforce');
  chmodSync(join(folder, 'b', 'taskforce'), 0o644);
  symlinkSync('nowhere', join(folder, 'taskforce'));
  const PATH = [join(folder, 'a'), join(folder, 'b'), folder].join(delimiter);
  const home = join(realpathSync(folder), 'node_modules', 'taskforce-sidecar', 'dist');
  assert.throws(() => findBinary(undefined, { PATH }), {
    code: 'E_BINARY_NOT_FOUND',
    message: [
      `no taskforce binary for ${HERE}; tried`,
      '  the `binary` option: not given',
      '  TASKFORCE_BINARY: not set',
      `  the package ${PLATFORM}: not installed where ${home} would find it`,
      `  ${join(folder, 'a', 'taskforce')}: not a file`,
      `  ${join(folder, 'b', 'taskforce')}: not executable`,
      `  ${join(folder, 'taskforce')}: not there`,
      'install again with optional dependencies (npm install --include=optional), or ' +
        'name a binary with TASKFORCE_BINARY or the `binary` option',
    ].join('\n'),
  });
});

test('a place that somebody named is not passed over in silence', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  const env = { PATH: join(executable(folder, 'taskforce'), '..'), TASKFORCE_BINARY: '/no/such' };
  assert.throws(() => findBinary('/no/given', env), {
    message: /`binary` option: \/no\/given: not there/,
  });
  assert.throws(() => findBinary(undefined, env), { message: /TASKFORCE_BINARY: \/no\/such: not/ });
});

test('an installed binary that lost its execute bit is not passed over either', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary } = await installClient(folder);
  const installed = executable(folder, 'node_modules', PLATFORM, 'bin', 'taskforce');
  chmodSync(installed, 0o644);
  const env = { PATH: join(executable(folder, 'taskforce'), '..') };
  const path = realpathSync(installed);
  assert.throws(() => findBinary(undefined, env), {
    message: [
      `no taskforce binary for ${HERE}; tried`,
      `  the package ${PLATFORM}: ${path}: not executable`,
      `run chmod +x ${path}, or install again`,
    ].join('\n'),
  });
});

test('a folder that was installed on another platform is recognised', async (t) => {
  const folder = temporaryFolder(t);
  const { findBinary, PLATFORMS } = await installClient(folder);
  const other = PLATFORMS.find((platform) => platform !== HERE);
  const home = join(folder, 'node_modules', '@taskforce-sidecar', other);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{}');
  assert.throws(() => findBinary(undefined, {}), {
    message: new RegExp(`\\n\\S+${other} is for ${other}: install on this machine`),
  });
});

test('the command does not look for itself on PATH', async (t) => {
  const folder = temporaryFolder(t);
  const { findForCommand } = await installClient(folder);
  const env = { PATH: join(executable(folder, 'taskforce'), '..') };
  assert.throws(() => findForCommand(env), { code: 'E_BINARY_NOT_FOUND' });
});
