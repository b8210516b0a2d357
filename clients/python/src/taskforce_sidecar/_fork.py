"""Keeps forked children away from their parent's sidecar.

A forked child has a copy of every open file, but not the threads that use them. Two processes that
write to one pipe would garble each other's calls, and a pipe that a child keeps open has no end
when the parent closes it. So the child's copies are replaced by the null device, at once; the
parent's are not affected. The client refuses to serve a process that did not make it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import IO, Protocol

from ._errors import TaskforceError


class Piped(Protocol):
    """Whoever has pipes to a sidecar."""

    def pipes(self) -> Iterable[IO[bytes]]: ...


_piped: weakref.WeakSet[Piped] = weakref.WeakSet()


def register(piped: Piped) -> None:
    """Lets the children of this process lose its pipes."""
    _piped.add(piped)


def is_foreign(owner: int) -> bool:
    """Says whether the process of that id is another one than this."""
    return owner != os.getpid()


def forked(owner: int) -> TaskforceError:
    """Returns the error of a call to a client that another process made."""
    return TaskforceError(
        "E_FORKED",
        f"this client belongs to process {owner}, and this is {os.getpid()}; "
        "a forked child has to make a client of its own",
    )


def _lose_pipes() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for piped in list(_piped):
        for pipe in piped.pipes():
            if not pipe.closed:
                os.dup2(null, pipe.fileno(), inheritable=False)
    os.close(null)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_pipes)
