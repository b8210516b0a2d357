import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { failure } from './errors.js';

/** The platforms that have a package with a binary, named as Node names them. */
export const PLATFORMS = [
  'linux-x64',
  'linux-arm64',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64',
  'win32-arm64',
];

const NAME = process.platform === 'win32' ? 'taskforce.exe' : 'taskforce';
const PLATFORM = `${process.platform}-${process.arch}`;
const REMEDY_BY_HAND = 'name a binary with TASKFORCE_BINARY or the `binary` option';

/** A place that was looked at and why it will not do. */
interface Try {
  place: string;
  problem: string;
}

/**
 * Returns the path of the sidecar's binary: the one given, else the one that TASKFORCE_BINARY names,
 * else that of the installed platform package, else the first on PATH. A place that somebody named or
 * installed is final: falling through to another binary would hide the mistake.
 */
export function findBinary(given: string | undefined, env: NodeJS.ProcessEnv): string {
  if (given !== undefined) return only(given, 'the `binary` option');
  const tried = [{ place: 'the `binary` option', problem: 'not given' }];
  return findInstalled(env, tried) ?? findOnPath(env, tried);
}

/** Finds the binary for the command `taskforce`, which would find itself on PATH. */
export function findForCommand(env: NodeJS.ProcessEnv): string {
  const tried: Try[] = [];
  const path = findInstalled(env, tried);
  if (!path) throw notFound(tried);
  return path;
}

function findInstalled(env: NodeJS.ProcessEnv, tried: Try[]): string | undefined {
  if (env.TASKFORCE_BINARY) return only(env.TASKFORCE_BINARY, 'TASKFORCE_BINARY');
  tried.push({ place: 'TASKFORCE_BINARY', problem: 'not set' });
  const name = packageOf(PLATFORM);
  const installed = resolveFrom(`${name}/bin/${NAME}`);
  if (installed) return only(installed, `the package ${name}`);
  const here = dirname(fileURLToPath(import.meta.url));
  tried.push({
    place: `the package ${name}`,
    problem: `not installed where ${here} would find it`,
  });
  return undefined;
}

function findOnPath(env: NodeJS.ProcessEnv, tried: Try[]): string {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const folder of new Set(folders)) {
    const candidate = join(folder, NAME);
    const problem = unusable(candidate);
    if (!problem) return candidate;
    tried.push({ place: candidate, problem });
  }
  throw notFound(tried);
}

function only(path: string, source: string): string {
  const problem = unusable(path);
  if (!problem) return resolve(path);
  const remedy =
    problem === 'not executable' ? `run chmod +x ${path}, or install again` : REMEDY_BY_HAND;
  throw unavailable([{ place: `${source}: ${path}`, problem }], remedy);
}

function packageOf(platform: string): string {
  return `@taskforce-sidecar/${platform}`;
}

function resolveFrom(path: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(path);
  } catch {
    return undefined;
  }
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

function notFound(tried: Try[]): Error {
  return unavailable(tried, remedyOfMissing());
}

/** What to do where no platform package fits. */
function remedyOfMissing(): string {
  if (!PLATFORMS.includes(PLATFORM)) {
    return `there is no package for this platform; build the binary from source and ${REMEDY_BY_HAND}`;
  }
  for (const other of PLATFORMS) {
    const found = other !== PLATFORM && resolveFrom(`${packageOf(other)}/package.json`);
    if (found) {
      const folder = dirname(found);
      return `${folder} is for ${other}: install on this machine instead of copying node_modules`;
    }
  }
  return `install again with optional dependencies (npm install --include=optional), or ${REMEDY_BY_HAND}`;
}

function unavailable(tried: Try[], remedy: string): Error {
  const places = tried.map(({ place, problem }) => `\n  ${place}: ${problem}`).join('');
  const text = `no taskforce binary for ${PLATFORM}; tried${places}\n${remedy}`;
  return failure('E_BINARY_NOT_FOUND', text);
}
