import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, parse, sep } from 'node:path';

import { failure } from './errors.js';

// docs/helpers.md specifies these helpers for all clients.

/** The keys of a Git worktree. */
export interface WorktreeKeys {
  /** The worktree: for whoever reads or writes its files. */
  worktree: string;
  /** What all worktrees of the repository share: for whoever commits, fetches or moves branches. */
  repository: string;
}

/**
 * Returns the canonical resource key of a file or folder, whether it exists or not: one key whatever
 * path leads to it, through links and in whatever case a file system that folds it is asked.
 * @throws {TaskforceError} E_INPUT if the path cannot be looked at
 */
export function fileKey(path: string): string {
  return `file:${canonical(resolveReal(path))}`;
}

/**
 * Returns the keys of the Git worktree that a path is in. Git need not be installed.
 * @throws {TaskforceError} E_INPUT if the path is not in a worktree
 */
export function worktreeKeys(path: string): WorktreeKeys {
  const { top, gitFolder } = findWorktree(resolveReal(path).real);
  return {
    worktree: `worktree:${canonical({ real: top, rest: [] })}`,
    repository: `repository:${canonical(resolveReal(commonFolder(gitFolder)))}`,
  };
}

/** A path in two parts: the real path of what exists, and what would follow it. */
interface RealPath {
  real: string;
  rest: string[];
}

/** Resolves a path part by part, so that `..` is the parent of what a link leads to. */
function resolveReal(path: string): RealPath {
  const absolute = isAbsolute(path) ? path : `${process.cwd()}/${path}`;
  const { root } = parse(absolute);
  let real = root;
  const rest: string[] = [];
  for (const part of partsOf(absolute.slice(root.length))) {
    if (part === '..') {
      if (rest.pop() === undefined) real = dirname(real);
      continue;
    }
    const next = rest.length === 0 && existing(() => realpathSync.native(join(real, part)));
    if (next) real = next;
    else rest.push(part);
  }
  return { real, rest };
}

/** Returns what a look at the file system finds, or nothing if it is not there. */
function existing<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return undefined;
    throw refusal(`the path cannot be looked at: ${code}`);
  }
}

/** How a file system treats names; another one in tests. */
export interface Names {
  /** Whether names fold where nothing else tells. */
  usual: boolean;
  /** Whether the same file answers to the name in the other case; the name is of something there. */
  folds(folder: string, name: string): boolean;
}

const here: Names = {
  usual: process.platform === 'darwin' || process.platform === 'win32',
  folds(folder, name) {
    const [as, other] = [name, swapCase(name)].map((one) =>
      existing(() => statSync(join(folder, one), { bigint: true })),
    );
    return other !== undefined && as?.ino === other.ino && as.dev === other.dev;
  },
};

function canonical({ real, rest }: RealPath): string {
  const { root } = parse(real);
  const prefix = root.replaceAll(sep, '/').replace(/\/$/, '');
  return foldPath(prefix, partsOf(real.slice(root.length)), rest, here);
}

/** Splits a path below its root. */
function partsOf(path: string): string[] {
  const separators = sep === '/' ? '/' : /[\\/]/;
  return path.split(separators).filter((part) => part !== '' && part !== '.');
}

/** Folds the parts of a path where the file system folds them. */
export function foldPath(root: string, parts: string[], rest: string[], names: Names): string {
  let { usual: folds } = names;
  let path = `${root}/`;
  const folded = parts.map((part) => {
    if (swapCase(part) !== part) folds = names.folds(path, part);
    path = join(path, part);
    return folds ? fold(part) : part;
  });
  const more = rest.map((part) => (folds ? fold(part) : part));
  return [names.usual ? fold(root) : root, ...folded, ...more].join('/') || '/';
}

/** Folds one name: the same for every name that a folding file system could take for it. */
export function fold(name: string): string {
  return [...name.normalize('NFC')].map((character) => character.toLowerCase()).join('');
}

/** Changes the case of every letter that has one single letter for the other case. */
function swapCase(name: string): string {
  const swap = (character: string) => {
    const lower = character.toLowerCase();
    const other = lower === character ? character.toUpperCase() : lower;
    return [...other].length === 1 ? other : character;
  };
  return [...name].map(swap).join('');
}

/** Finds the first folder upwards that has an entry `.git`, and the Git directory that it names. */
function findWorktree(from: string): { top: string; gitFolder: string } {
  for (let top = from; ; top = dirname(top)) {
    const entry = join(top, '.git');
    const found = existing(() => statSync(entry));
    if (found?.isDirectory()) return { top, gitFolder: entry };
    if (found) return { top, gitFolder: absoluteFrom(top, gitFileTarget(entry)) };
    if (top === dirname(top)) throw refusal('the path is not in a Git worktree');
  }
}

function gitFileTarget(file: string): string {
  const [, target] = readFileSync(file, 'utf8').match(/^gitdir: (.+?)\r?\n?$/) ?? [];
  if (!target) throw refusal(`${file} does not name a Git directory`);
  return target;
}

/** Returns the folder that all worktrees of a repository share. */
function commonFolder(gitFolder: string): string {
  const name = existing(() => readFileSync(join(gitFolder, 'commondir'), 'utf8'));
  return name === undefined ? gitFolder : absoluteFrom(gitFolder, name.trimEnd());
}

function absoluteFrom(folder: string, path: string): string {
  return isAbsolute(path) ? path : `${folder}/${path}`;
}

function refusal(message: string): Error {
  return failure('E_INPUT', message, { reason: 'parameters' });
}
