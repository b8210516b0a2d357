// The archives of `make dist`, installed by the package managers that people use, outside of the source
// tree and without running any script; then the example host runs from there.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { readPackages, startRegistry } from './registry.mjs';

const DIST = fileURLToPath(new URL('../../../dist/npm/', import.meta.url));
const MANAGERS = fileURLToPath(new URL('node_modules/', import.meta.url));
const HERE = `${process.platform}-${process.arch}`;
const packages = readPackages(DIST);
const version = packages[0].description.version;
let registry;

before(async () => {
  registry = await startRegistry(packages);
});
after(() => registry.close());

/** An empty project outside of the source tree, with a home and caches of its own. */
function project(t, files = {}) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'taskforce-packages-')));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  const dependencies = { 'taskforce-sidecar': version };
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'host', dependencies }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  cpSync(join(DIST, 'packages/taskforce-sidecar/examples'), join(cwd, 'host'), { recursive: true });
  const env = { PATH: process.env.PATH, HOME: join(cwd, 'home'), CI: '1' };
  const execute = promisify(execFile);
  return {
    cwd,
    run: async (...command) => (await execute(command[0], command.slice(1), { cwd, env })).stdout,
  };
}

const node = process.execPath;
const pnpm = [node, join(MANAGERS, 'pnpm/bin/pnpm.cjs')];
const yarn = [node, join(MANAGERS, 'yarn/bin/yarn.js')];
const berry = [node, join(MANAGERS, '@yarnpkg/cli-dist/bin/yarn.js')];
const berryFiles = (nodeLinker) => ({
  'yarn.lock': '',
  '.yarnrc.yml': JSON.stringify({
    nodeLinker,
    npmRegistryServer: registry.url,
    unsafeHttpWhitelist: ['127.0.0.1'],
    enableGlobalCache: false,
    enableScripts: false,
    enableTelemetry: false,
    // Yarn 4 takes no package younger than a day unless told so.
    npmMinimalAgeGate: 0,
  }),
});
const npmInstall = (...more) => [
  ...['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund'],
  ...[`--registry=${registry.url}`, ...more],
];

const managers = {
  npm: {
    install: () => npmInstall(),
    command: ['npx', '--no', 'taskforce'],
  },
  pnpm: {
    install: () => [...pnpm, 'install', '--ignore-scripts', `--registry=${registry.url}`],
    command: [...pnpm, 'exec', 'taskforce'],
  },
  'yarn 1': {
    install: () => [...yarn, 'install', '--ignore-scripts', '--registry', registry.url],
    command: [...yarn, '--silent', 'taskforce'],
  },
  'yarn 4, node_modules': {
    files: () => berryFiles('node-modules'),
    install: () => [...berry, 'install', '--no-immutable'],
    command: [...berry, 'taskforce'],
  },
  "yarn 4, Plug'n'Play": {
    files: () => berryFiles('pnp'),
    install: () => [...berry, 'install', '--no-immutable'],
    command: [...berry, 'taskforce'],
    node: [...berry, 'node'],
  },
};

for (const [name, manager] of Object.entries(managers)) {
  test(`installed by ${name}`, async (t) => {
    const { run } = project(t, manager.files?.());
    await run(...manager.install());
    assert.match(await run(...manager.command, 'version'), /^taskforce /);
    const output = await run(...(manager.node ?? [node]), 'host/host.mjs', 'store');
    assert.match(output, /0 active, 0 holds/);
  });
}

test('only the package of this platform is installed', async (t) => {
  const { cwd, run } = project(t);
  await run(...npmInstall());
  assert.deepEqual(readdirSync(join(cwd, 'node_modules/@taskforce-sidecar')), [HERE]);
  const { mode } = statSync(join(cwd, `node_modules/@taskforce-sidecar/${HERE}/bin/taskforce`));
  assert.equal(mode & 0o111, 0o111);
});

/** The error of the client in a project. */
async function refusal({ run }) {
  const program = `
    import { TaskforceStore } from 'taskforce-sidecar';
    await new TaskforceStore().ping().catch((error) => console.log(error.code, error.message));
  `;
  return run(node, '--input-type=module', '-e', program);
}

test('without optional dependencies, the error says so', async (t) => {
  const host = project(t);
  await host.run(...npmInstall('--omit=optional'));
  const message = await refusal(host);
  assert.match(message, /^E_BINARY_NOT_FOUND no taskforce binary for /);
  assert.match(message, new RegExp(`@taskforce-sidecar/${HERE}: not installed`));
  assert.match(message, /install again with optional dependencies/);
  const command = await host.run('npx', '--no', 'taskforce').catch((error) => error);
  assert.equal(command.code, 1);
  assert.match(command.stderr, /install again with optional dependencies/);
});

test('a node_modules from another platform is recognised', async (t) => {
  const host = project(t);
  await host.run(...npmInstall());
  const scope = join(host.cwd, 'node_modules/@taskforce-sidecar');
  const other = HERE === 'darwin-arm64' ? 'linux-x64' : 'darwin-arm64';
  renameSync(join(scope, HERE), join(scope, other));
  assert.match(
    await refusal(host),
    new RegExp(`${other} is for ${other}: install on this machine`),
  );
});

test('a binary that lost its execute bit is named', async (t) => {
  const host = project(t);
  await host.run(...npmInstall());
  const path = join(host.cwd, `node_modules/@taskforce-sidecar/${HERE}/bin/taskforce`);
  chmodSync(path, 0o644);
  assert.match(await refusal(host), new RegExp(`${path}: not executable\nrun chmod \\+x ${path}`));
});

test('the archives hold what a user needs, and nothing else', async () => {
  const { stdout } = await promisify(execFile)('tar', [
    'tzf',
    join(DIST, packages.find(isClient).file),
  ]);
  const files = stdout.trim().split('\n').sort();
  const unknown = files.filter(
    (file) =>
      !/^package\/(dist\/\w+\.(js|d\.ts)|examples\/[\w-]+\.mjs|schema\/(openrpc|taskforce\.schema)\.json|README\.md|LICENSE|package\.json)$/.test(
        file,
      ),
  );
  assert.deepEqual(unknown, []);
  for (const { description, file } of packages) {
    assert.equal(description.scripts, undefined);
    assert.equal(description.devDependencies, undefined);
    assert.ok(existsSync(join(DIST, file)));
    if (isClient({ description })) continue;
    const { stdout: list } = await promisify(execFile)('tar', ['tzf', join(DIST, file)]);
    const binary = description.os[0] === 'win32' ? 'taskforce.exe' : 'taskforce';
    const expected = ['LICENSE', 'README.md', `bin/${binary}`, 'package.json'];
    assert.deepEqual(
      list.trim().split('\n').sort(),
      expected.map((name) => `package/${name}`),
    );
  }
});

test('the client depends on exactly its own version of every platform', () => {
  const { optionalDependencies, dependencies } = packages.find(isClient).description;
  const others = packages.filter((one) => !isClient(one));
  const expected = others.map(({ description }) => [description.name, version]);
  assert.deepEqual(optionalDependencies, Object.fromEntries(expected));
  assert.equal(dependencies, undefined);
  assert.equal(others.length, 6);
});

test('the JSON Schema of the types names nothing that it does not have', () => {
  const folder = join(DIST, 'packages/taskforce-sidecar/schema');
  const text = readFileSync(join(folder, 'taskforce.schema.json'), 'utf8');
  const { $defs } = JSON.parse(text);
  assert.ok($defs.Reservation && $defs.ReserveParams && $defs.ErrorData);
  for (const [, name] of text.matchAll(/"\$ref": "([^"]*)"/g)) {
    assert.ok($defs[name.replace('#/$defs/', '')], name);
  }
});

test('CommonJS reaches the client and the schemas', async (t) => {
  const host = project(t);
  await host.run(...npmInstall());
  const program = `
    const { methods } = require('taskforce-sidecar/schema/openrpc.json');
    import('taskforce-sidecar').then(async ({ TaskforceStore }) => {
      const store = new TaskforceStore({ root: 'store' });
      console.log(methods.length > 20, (await store.initialize()).protocol);
      await store.close();
    });
  `;
  assert.equal(await host.run(node, '--input-type=commonjs', '-e', program), 'true 1\n');
});

test('programs compile against the installed types, with an older TypeScript too', async (t) => {
  const program = `
    import { TaskforceError, TaskforceGovernor, TaskforceStore } from 'taskforce-sidecar';
    export async function admit(input: Parameters<TaskforceGovernor['reserve']>[0]): Promise<string> {
      const store = new TaskforceStore();
      const lead = { role: 'lead', sessionId: 's' } as const;
      try {
        return (await new TaskforceGovernor(store).reserve(input, 'r', lead)).state;
      } catch (error) {
        if (error instanceof TaskforceError && error.code === 'E_BUDGET_EXHAUSTED')
          return error.details.budget.limit;
        throw error;
      }
    }
  `;
  const host = project(t, { 'host.mts': program });
  await host.run(...npmInstall());
  const types = ['--types', 'node', '--typeRoots', join(MANAGERS, '@types')];
  const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022'];
  const compiler = join(MANAGERS, 'typescript/bin/tsc');
  await host.run(node, compiler, '--module', 'nodenext', ...options, ...types, 'host.mts');
});

test('what README links to is in the archive', () => {
  const folder = join(DIST, 'packages/taskforce-sidecar');
  const readme = readFileSync(join(folder, 'README.md'), 'utf8');
  for (const [, path] of readme.matchAll(/\]\(((?!https?:)[^)#]+)/g)) {
    assert.ok(existsSync(join(folder, path)), `README.md links to ${path}`);
  }
});

function isClient({ description }) {
  return description.name === 'taskforce-sidecar';
}
