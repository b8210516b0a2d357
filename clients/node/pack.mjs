// Packs the npm packages of a release: the client, and for each binary a platform package that the
// client finds it in. The same input gives the same bytes.
//
//     npm run build
//     node pack.mjs OUT BINARIES
//
// BINARIES holds the binaries as `make dist-binaries` lays them out, in folders such as linux-amd64.
// The archives are written to OUT, beside `packages`, what they were made from. The client depends,
// optionally, on the exact version of every platform package: npm installs the one that fits.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { PLATFORMS } from './dist/binary.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const license = join(here, '../../LICENSE');
const { scripts, devDependencies, ...client } = JSON.parse(
  readFileSync(join(here, 'package.json'), 'utf8'),
);
const [out, binaries] = process.argv.slice(2).map((path) => resolve(path));
const nameOf = (platform) => `@taskforce-sidecar/${platform}`;
const GO_NAMES = { win32: 'windows', x64: 'amd64' };

function write(folder, description) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
}

function layOutPlatform(platform, folder) {
  const [os, cpu] = platform.split('-');
  const goFolder = [os, cpu].map((name) => GO_NAMES[name] ?? name).join('-');
  const file = os === 'win32' ? 'taskforce.exe' : 'taskforce';
  mkdirSync(join(folder, 'bin'), { recursive: true });
  cpSync(join(binaries, goFolder, file), join(folder, 'bin', file));
  cpSync(license, join(folder, 'LICENSE'));
  writeFileSync(
    join(folder, 'README.md'),
    `The Taskforce sidecar for ${os} on ${cpu}: a part of [${client.name}](https://www.npmjs.com/package/${client.name}), which is what to install.\n`,
  );
  write(folder, {
    name: nameOf(platform),
    version: client.version,
    description: `The Taskforce sidecar for ${os} on ${cpu}.`,
    license: client.license,
    os: [os],
    cpu: [cpu],
    files: ['bin'],
    // A file that `bin` names stays executable, whoever packs and installs it. The command
    // `taskforce` is the client's: two packages that link one name would overwrite each other.
    bin: { [`taskforce-${platform}`]: `bin/${file}` },
    // Yarn's Plug'n'Play must not leave a program inside an archive.
    preferUnplugged: true,
  });
}

/** Sets every file's mode: an archive must not tell the umask of whoever packed it. */
function fixModes(folder) {
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const programs = Object.values(bin).map((path) => join(folder, path));
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = join(folder, name);
    if (statSync(path).isFile()) chmodSync(path, programs.includes(path) ? 0o755 : 0o644);
  }
}

function layOutClient(folder) {
  for (const file of client.files)
    cpSync(join(here, file), join(folder, file), { recursive: true });
  for (const file of ['openrpc.json', 'taskforce.schema.json'])
    cpSync(join(here, '../../schema/generated', file), join(folder, 'schema', file));
  cpSync(license, join(folder, 'LICENSE'));
  const versions = PLATFORMS.map((platform) => [nameOf(platform), client.version]);
  const files = [...client.files, 'schema'];
  write(folder, { ...client, files, optionalDependencies: Object.fromEntries(versions) });
}

const packages = join(out, 'packages');
rmSync(out, { recursive: true, force: true });
mkdirSync(packages, { recursive: true });
layOutClient(join(packages, client.name));
for (const platform of PLATFORMS) layOutPlatform(platform, join(packages, platform));
const names = [client.name, ...PLATFORMS];
for (const name of names) fixModes(join(packages, name));
const folders = names.map((name) => `./packages/${name}`);
const archives = execFileSync('npm', ['pack', '--json', ...folders], {
  cwd: out,
  encoding: 'utf8',
});
for (const { filename, size, unpackedSize, files } of JSON.parse(archives)) {
  console.log(`${filename}: ${size} bytes, ${unpackedSize} unpacked, ${files.length} files`);
}
