"""Who reads what the sidecar writes, for the blocking client.

Whoever holds the role of the reader reads on behalf of all. A caller that finds the role free takes
it until its own answer is there, because waking another thread costs as much as the round trip
itself. While nobody calls, and as long as several do, a thread of the connection has the role; it
stands aside once calls come one by one.
"""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Callable
from typing import IO, Protocol

from ._launch import READ_SIZE
from ._reply import Reply

# Whether a caller can wait for an answer without taking it: an interrupt must lose none.
_CAN_WAIT = sys.platform != "win32"
# How long the connection's own thread stands aside after the last call, in seconds.
_ASIDE = 0.01


class Source(Protocol):
    """The connection whose sidecar writes."""

    def take(self, data: bytes) -> None:
        """Hands answers to those who wait for them."""

    def waits(self) -> bool:
        """Says whether an answer is due."""
        ...

    def give_up(self) -> None:
        """Ends the sidecar, because something that it wrote was lost."""


class Reading:
    """The output of one sidecar."""

    def __init__(self, pipe: IO[bytes], source: Source) -> None:
        self._pipe = pipe
        self._source = source
        self._await_arrival = _waiter(pipe)
        # Reentrant only because such a lock knows its owner.
        self._role = threading.RLock()
        self._needed = threading.Event()
        self._callers = 0

    def until(self, reply: Reply) -> None:
        """Reads until the reply is there, unless somebody else reads already."""
        if not _CAN_WAIT:
            return
        self._callers += 1
        taking = False
        try:
            if not self._role.acquire(blocking=False):
                return
            while not reply.done() and not self._pipe.closed:
                self._await_arrival()
                taking = True
                if not self._receive():
                    break  # the connection's thread learns why
                taking = False
        except BaseException:
            if taking:
                # The interrupt may have taken away an answer that somebody waits for.
                self._source.give_up()
            raise
        finally:
            try:
                self._role.release()
            except RuntimeError:
                pass  # The role is another one's.
            else:
                if not reply.done() or self._source.waits():
                    self._needed.set()

    def run(self) -> None:
        """Reads whenever no caller does, until the end. For the connection's own thread."""
        while self._read_while_needed():
            self._stand_aside()

    def call_back(self) -> None:
        """Ends the standing aside."""
        self._needed.set()

    def close(self) -> None:
        """Closes the pipe, whose end was reached."""
        with self._role:
            self._pipe.close()

    def _receive(self) -> bool:
        """Returns false at the end of the output."""
        data = self._pipe.read(READ_SIZE)
        if data:
            self._source.take(data)
        return bool(data)

    def _read_while_needed(self) -> bool:
        """Reads until calls come one by one. Returns false at the end of the output."""
        while True:
            with self._role:
                if not self._receive():
                    return False
            # A caller that found the role taken until now is one that waits.
            if _CAN_WAIT and not self._source.waits():
                return True

    def _stand_aside(self) -> None:
        """Leaves the reading to callers, until one needs help or all are silent."""
        seen = -1
        while seen != self._callers:
            seen = self._callers
            if self._needed.wait(_ASIDE):
                break
        self._needed.clear()


def _waiter(pipe: IO[bytes]) -> Callable[[], object]:
    """Returns a function that waits until something has arrived."""
    if sys.platform == "win32":
        return lambda: None
    arrival = select.poll()
    arrival.register(pipe, select.POLLIN)
    return arrival.poll
