import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { cpus, loadavg, release, type } from 'node:os';
import { join } from 'node:path';

/** Says what the figures were measured on. */
export function describeMachine(bench) {
  const folder = bench.folder();
  const [{ model }] = cpus();
  const { go, sqlite } = bench.raw('version');
  const sidecar = execFileSync(bench.binary, ['version'], { encoding: 'utf8' }).split('\n')[0];
  return [
    `machine: ${model.trim()}, ${cpus().length} cores, ${type()} ${release()}, load ${loadavg()[0].toFixed(1)}`,
    `disk: ${fileSystem(folder)}, ${syncsPerSecond(folder)} fdatasync/s`,
    `Go ${go} with SQLite ${sqlite}, Node ${process.versions.node} with SQLite ${process.versions.sqlite ?? 'none'}`,
    sidecar,
  ];
}

/** How often a second 4 KiB reach the disk. */
export function syncsPerSecond(folder) {
  const file = openSync(join(folder, 'sync'), 'w');
  const page = Buffer.alloc(4096, 1);
  const start = performance.now();
  let count = 0;
  for (; performance.now() - start < 500; count += 1) {
    writeSync(file, page, 0, page.length, 0);
    fdatasyncSync(file);
  }
  closeSync(file);
  return count * 2;
}

function fileSystem(folder) {
  if (!existsSync('/proc/self/mounts')) return 'file system unknown without /proc';
  const mounts = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n');
  const holders = mounts
    .map((mount) => mount.split(' '))
    .filter(([, at]) => at === '/' || folder === at || folder.startsWith(`${at}/`));
  const [, , name] = holders.reduce((best, next) =>
    next[1].length >= best[1].length ? next : best,
  );
  return name;
}
