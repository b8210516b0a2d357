"""Finding the sidecar's binary."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ._errors import TaskforceError

VARIABLE = "TASKFORCE_BINARY"
_NAME = "taskforce.exe" if sys.platform == "win32" else "taskforce"


def find_binary(explicit: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the binary.

    A path that somebody chose, by argument or by environment variable, is used or refused: falling
    back to another binary would hide the mistake. Without one, the binary inside the installed
    package is preferred to `PATH`.
    """
    if explicit is not None:
        return _only(os.fspath(explicit), "the path given")
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return _only(chosen, f"${VARIABLE}")
    packaged = packaged_binary()
    problem = _problem(packaged)
    if not problem:
        return packaged
    found = shutil.which(_NAME)
    if found:
        return found
    raise _not_found(
        _remedy(packaged, problem),
        f"${VARIABLE}: not set",
        f"inside the package: {packaged}: {problem}",
        f"on PATH: {os.environ.get('PATH', '')}: not there",
    )


def carried_binary() -> str:
    """Returns the path of the binary inside the installed package, and of no other."""
    packaged = packaged_binary()
    problem = _problem(packaged)
    if problem:
        place = f"inside the package: {packaged}: {problem}"
        raise _not_found(_remedy(packaged, problem), place)
    return packaged


def packaged_binary() -> str:
    """Returns where a wheel puts the binary."""
    return str(Path(__file__).parent / "bin" / _NAME)


def _only(path: str, source: str) -> str:
    problem = _problem(path)
    if not problem:
        return path
    raise _not_found(_remedy(path, problem), f"{source}: {path}: {problem}")


def _problem(path: str) -> str:
    """Says why a path cannot be executed; nothing if it can."""
    if not os.path.exists(path):
        return "not there"
    if not os.path.isfile(path):
        return "not a file"
    return "" if os.access(path, os.X_OK) else "not executable"


def _remedy(path: str, problem: str) -> str:
    if problem == "not executable":
        return f"its execute permission was lost on the way: chmod +x {path}"
    return (
        "install a wheel for this platform (pip install --force-reinstall --only-binary :all: "
        f"taskforce-sidecar), or name a binary by the argument `binary` or by ${VARIABLE}"
    )


def _not_found(remedy: str, *tried: str) -> TaskforceError:
    places = "".join(f"\n  {place}" for place in tried)
    message = f"no executable {_NAME}; tried:{places}\n{remedy}"
    return TaskforceError("E_BINARY_NOT_FOUND", message)
