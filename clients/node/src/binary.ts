import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join, resolve } from 'node:path';

import { failure } from './errors.js';

const NAME = process.platform === 'win32' ? 'taskforce.exe' : 'taskforce';

/**
 * Returns the path of the sidecar's binary: the one given, else the one that TASKFORCE_BINARY names,
 * else that of the installed platform package, else the first on PATH. A place that somebody named
 * is final: falling through to another binary would hide the mistake.
 */
export function findBinary(given: string | undefined, env: NodeJS.ProcessEnv): string {
  if (given !== undefined) return only(given, 'the `binary` option');
  if (env.TASKFORCE_BINARY) return only(env.TASKFORCE_BINARY, 'TASKFORCE_BINARY');
  const platformPackage = `@taskforce-sidecar/${process.platform}-${process.arch}`;
  const tried = [
    'the `binary` option: not given',
    'TASKFORCE_BINARY: not set',
    `the package ${platformPackage}: not installed`,
  ];
  const candidates = [installed(platformPackage), ...onPath(env)];
  for (const candidate of candidates) {
    const problem = candidate && unusable(candidate);
    if (candidate && !problem) return candidate;
    if (candidate) tried.push(`${candidate}: ${problem}`);
  }
  throw notFound(tried);
}

function only(path: string, source: string): string {
  const problem = unusable(path);
  if (problem) throw notFound([`${source}: ${path}: ${problem}`]);
  return resolve(path);
}

function installed(platformPackage: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${platformPackage}/bin/${NAME}`);
  } catch {
    return undefined;
  }
}

function onPath(env: NodeJS.ProcessEnv): string[] {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...new Set(folders)].map((folder) => join(folder, NAME));
}

/** Says why a path cannot be started, or nothing if it can. */
function unusable(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'not a file';
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'not executable' : 'not there';
  }
}

function notFound(tried: string[]): Error {
  const places = tried.map((place) => `\n  ${place}`).join('');
  return failure('E_BINARY_NOT_FOUND', `no taskforce binary; tried${places}`);
}
