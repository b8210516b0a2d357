"""Canonical keys of resources: one thing has one key, whatever path led to it.

Specified in docs/helpers.md of the repository, for all clients alike.
"""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypedDict

from ._errors import TaskforceError


class WorktreeKeys(TypedDict):
    """The keys of a Git worktree."""

    worktree: str
    """Its files: for whoever reads or writes them."""

    repository: str
    """What all worktrees of its repository share: for whoever commits, fetches, moves branches or
    edits the configuration, from any of them.
    """


def file_key(path: str | os.PathLike[str]) -> str:
    """Returns the canonical resource key of a file or folder, which need not exist.

    Symbolic links are followed, and case is folded where the file system folds it. Hard links are
    different keys, and the key of a folder does not cover what is in it. Raises `E_INPUT` if the
    path is not Unicode text.
    """
    return "file:" + _key(_canonical(os.fspath(path)))


def worktree_keys(path: str | os.PathLike[str]) -> WorktreeKeys:
    """Returns the keys of the Git worktree around a path, and of its repository.

    Raises `E_INPUT` outside of a worktree, and in a bare repository. Git need not be installed, and
    its environment variables are not looked at.
    """
    canonical = _canonical(os.fspath(path))
    for top in canonical.upwards():
        entry = os.path.join(top.path, ".git")
        if _exists(entry):
            common = _common_directory(_git_directory(top.path, entry))
            return {"worktree": "worktree:" + _key(top), "repository": "repository:" + _key(common)}
    raise _refused(f"{canonical.path} is not in a Git worktree")


class Canonical(NamedTuple):
    """A path without symbolic links."""

    # With the drive, on Windows; ends with a separator.
    root: str
    parts: list[str]
    # How many of the parts exist.
    existing: int

    @property
    def path(self) -> str:
        return os.path.join(self.root, *self.parts)

    def upwards(self) -> Iterator[Canonical]:
        """Yields the path and every folder above it."""
        for count in range(len(self.parts), -1, -1):
            yield Canonical(self.root, self.parts[:count], min(self.existing, count))


def _canonical(path: str) -> Canonical:
    """Follows the links of what exists of a path; the rest stays as it is."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _refused(f"the path {path!r} is not Unicode text") from None
    # `..` leads out of where a link leads to; Windows takes it out before it looks at links.
    absolute = os.path.abspath(path) if sys.platform == "win32" else os.path.join(os.getcwd(), path)
    drive, rest = os.path.splitdrive(absolute)
    current = drive + os.sep
    missing: list[str] = []
    for part in rest.replace(os.sep, "/").split("/"):
        if part == "..":
            if missing:
                missing.pop()
            else:
                current = os.path.dirname(current)
        elif part not in ("", "."):
            below = os.path.join(current, *missing, part)
            if not missing and _exists(below):
                current = os.path.realpath(below)
            else:
                missing.append(part)
    drive, rest = os.path.splitdrive(current)
    existing: list[str] = [part for part in rest.split(os.sep) if part]
    return Canonical(drive + os.sep, existing + missing, len(existing))


def _exists(path: str) -> bool:
    """Says whether there is something at a path, and not only a link that leads nowhere."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise _refused(f"{path} cannot be looked at: {error.strerror}") from error
    return True


def _key(canonical: Canonical) -> str:
    usual = sys.platform in ("win32", "darwin")
    return folded(canonical, _answers_to, usual).replace(os.sep, "/")


def folded(canonical: Canonical, answers: Callable[[str, str, str], bool], usual: bool) -> str:
    """Returns the path with each part folded where the file system folds.

    `answers(folder, part, other)` says whether the same file answers to the part in the other case;
    `usual`, whether that is usual on this platform.
    """
    folds, folder = usual, canonical.root
    parts: list[str] = []
    for number, part in enumerate(canonical.parts):
        other = _other_case(part)
        if number < canonical.existing and other != part:
            folds = answers(folder, part, other)
        folder = os.path.join(folder, part)
        parts.append(fold(part) if folds else part)
    return (fold(canonical.root) if usual else canonical.root) + os.sep.join(parts)


def fold(text: str) -> str:
    """Puts text into normal form C, then each code point into lower case by itself."""
    return "".join(letter.lower() for letter in unicodedata.normalize("NFC", text))


def _other_case(part: str) -> str:
    """Returns a name with the case of each letter changed that has two; the same if none has."""
    swapped = (letter.lower() if letter.lower() != letter else letter.upper() for letter in part)
    # A letter without a single counterpart stays.
    return "".join(b if len(b) == 1 else a for a, b in zip(part, swapped))


def _answers_to(folder: str, part: str, other: str) -> bool:
    try:
        one = os.stat(os.path.join(folder, part), follow_symlinks=False)
        two = os.stat(os.path.join(folder, other), follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(one, two)


def _git_directory(top: str, entry: str) -> str:
    """Returns the Git directory of a worktree: its `.git`, or where that leads to."""
    if os.path.isdir(entry):
        return entry
    start, _, named = _read(entry).rstrip("\r\n").partition("gitdir: ")
    if start or not named:
        raise _refused(f"{entry} does not name a Git directory")
    return os.path.join(top, named)


def _common_directory(git_directory: str) -> Canonical:
    """Returns what all worktrees of a repository share."""
    link = os.path.join(git_directory, "commondir")
    if _exists(link):
        git_directory = os.path.join(git_directory, _read(link).rstrip())
    return _canonical(git_directory)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read())
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}") from error


def _refused(message: str) -> TaskforceError:
    return TaskforceError(
        "E_INPUT", message, {"code": "E_INPUT", "retryable": False, "reason": "parameters"}
    )
