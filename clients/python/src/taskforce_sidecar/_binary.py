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
    packaged = str(Path(__file__).parent / "bin" / _NAME)
    if _runs(packaged):
        return packaged
    found = shutil.which(_NAME)
    if found:
        return found
    raise _not_found(
        f"${VARIABLE}: not set",
        f"inside the package: {packaged}",
        f"on PATH: {os.environ.get('PATH', '')}",
    )


def _only(path: str, source: str) -> str:
    if _runs(path):
        return path
    raise _not_found(f"{source}: {path}")


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _not_found(*tried: str) -> TaskforceError:
    places = "".join(f"\n  {place}" for place in tried)
    return TaskforceError("E_BINARY_NOT_FOUND", f"no executable {_NAME}; tried:{places}")
