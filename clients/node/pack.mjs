// Lays out the npm packages of a release, ready for `npm publish`: the client, and for each binary a
// platform package that the client finds it in.
//
//     npm run build
//     node pack.mjs OUT linux-x64=PATH darwin-arm64=PATH ...
//
// OUT/taskforce-sidecar depends, optionally, on every platform package: npm installs the one that fits.
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const license = join(here, '../../LICENSE');
const { scripts, devDependencies, ...client } = JSON.parse(
  readFileSync(join(here, 'package.json'), 'utf8'),
);
const [out, ...binaries] = process.argv.slice(2);
const scope = '@taskforce-sidecar';

function write(folder, description) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
}

function packPlatform(platform, binary) {
  const [os, cpu] = platform.split('-');
  const folder = join(out, platform);
  const file = join(folder, 'bin', os === 'win32' ? 'taskforce.exe' : 'taskforce');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  cpSync(binary, file);
  chmodSync(file, 0o755);
  cpSync(license, join(folder, 'LICENSE'));
  write(folder, {
    name: `${scope}/${platform}`,
    version: client.version,
    description: `The Taskforce sidecar for ${os} on ${cpu}.`,
    license: client.license,
    os: [os],
    cpu: [cpu],
    files: ['bin'],
  });
}

function packClient(platforms) {
  const folder = join(out, client.name);
  for (const file of client.files)
    cpSync(join(here, file), join(folder, file), { recursive: true });
  cpSync(license, join(folder, 'LICENSE'));
  const versions = platforms.map((platform) => [`${scope}/${platform}`, client.version]);
  write(folder, { ...client, optionalDependencies: Object.fromEntries(versions) });
}

const platforms = binaries.map((argument) => argument.split('='));
for (const [platform, binary] of platforms) packPlatform(platform, binary);
packClient(platforms.map(([platform]) => platform));
