"""How the sidecar is started, and when it is started or asked again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ._binary import find_binary
from ._errors import TaskforceError
from ._generated import RESENDS

# How often one call is sent, and how often a restart is tried, before the client gives up.
MAX_SENDS = 4
MAX_STARTS = 5

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 2.0
# A sidecar that lived this long had no trouble starting.
_HEALTHY_SECONDS = 5.0

# How long a sidecar that has closed its output may take to exit, in seconds.
EXIT_GRACE = 5.0
READ_SIZE = 1 << 16
_STDERR_TAIL = 4096


class Launch(NamedTuple):
    """What is started, and how long its first answer may take."""

    command: list[str]
    env: Mapping[str, str] | None
    timeout: float


def launch(
    root: str | os.PathLike[str] | None,
    binary: str | os.PathLike[str] | None,
    args: Sequence[str],
    env: Mapping[str, str] | None,
    timeout: float,
) -> Launch:
    """Puts the command line together."""
    command = [find_binary(binary), "serve"]
    if root is not None:
        command += ["--root", os.fspath(root)]
    return Launch([*command, *args], env, timeout)


class Backoff:
    """Spaces out the starts of a sidecar that keeps dying."""

    def __init__(self) -> None:
        self._deaths = 0

    def delay(self, lived: float) -> float:
        """Returns how long to wait before a start, after a sidecar that lived so many seconds."""
        if lived >= _HEALTHY_SECONDS:
            self._deaths = 0
        self._deaths += 1
        if self._deaths == 1:
            return 0.0
        return min(_FIRST_DELAY * 2.0 ** (self._deaths - 2), _LONGEST_DELAY)


def may_start_again(error: TaskforceError) -> bool:
    """Says whether another start may go better than the one that failed."""
    return error.retryable or error.code == "E_SIDECAR_START"


def may_send_again(error: TaskforceError, method: str, sends: int) -> bool:
    """Says whether a call that failed may be sent again: never if that could double it."""
    if sends == MAX_SENDS:
        return False
    if error.details["code"] == "E_SIDECAR_LOST":
        return method in RESENDS or error.details["outcome"] == "not_executed"
    # A sidecar that is shutting down refuses a call before it begins.
    return error.code == "E_SHUTTING_DOWN"


def is_unknown(error: TaskforceError) -> bool:
    """Says whether the call may have taken effect although it failed."""
    details = error.details
    return details["code"] == "E_SIDECAR_LOST" and details["outcome"] == "unknown"


def is_unanswered(error: TaskforceError) -> bool:
    """Says whether no sidecar has looked at the call: it says nothing of an earlier sending."""
    details = error.details
    if details["code"] == "E_SIDECAR_LOST":
        return details["outcome"] == "not_executed"
    return error.code in ("E_SIDECAR_START", "E_STORE_CLOSED", "E_SHUTTING_DOWN")


class Tail:
    """The end of what the sidecar wrote to stderr."""

    def __init__(self) -> None:
        self._data = b""

    def write(self, data: bytes) -> None:
        """Keeps as much of the data as an error message can carry."""
        self._data = (self._data + data)[-_STDERR_TAIL:]

    def obituary(self, status: int) -> str:
        """Says how the sidecar ended, with its last words."""
        how = f"with status {status}" if status >= 0 else f"by signal {-status}"
        words = self._data.decode(errors="replace").strip()
        return f"the sidecar ended {how}" + (f"; its last words:\n{words}" if words else "")
