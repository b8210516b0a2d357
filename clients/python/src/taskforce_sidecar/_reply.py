"""An answer that one thread waits for."""

from __future__ import annotations

import threading
from typing import Any


class Reply:
    """A future with one owner: cheaper than those that anybody may wait for."""

    __slots__ = ("_answered", "_error", "_gate", "_result")

    def __init__(self) -> None:
        self._answered = False
        self._error: BaseException | None = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def done(self) -> bool:
        """Says whether the answer is there."""
        return self._answered

    def set_result(self, result: Any, /) -> None:
        """Answers."""
        self._result = result
        self._answered = True
        self._gate.release()

    def set_exception(self, exception: BaseException, /) -> None:
        """Fails."""
        self._error = exception
        self._answered = True
        self._gate.release()

    def result(self, timeout: float = -1) -> Any:
        """Waits for the answer; for so many seconds at most, if not negative."""
        if not self._answered and not self._gate.acquire(timeout=timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result
