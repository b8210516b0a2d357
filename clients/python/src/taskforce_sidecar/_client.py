"""The blocking client."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from . import _fork
from ._connection import Connection
from ._errors import TaskforceError, closed, lost, start_failed
from ._generated import (
    ConnectionCalls,
    GovernorCalls,
    InitializeResult,
    StoreCalls,
    TaskCalls,
)
from ._launch import (
    EXIT_GRACE,
    MAX_STARTS,
    Backoff,
    is_unanswered,
    is_unknown,
    launch,
    may_send_again,
    may_start_again,
)
from ._watch import Watch

T = TypeVar("T")


class Client(ConnectionCalls):
    """A sidecar and the calls that it serves, for any number of threads.

    A sidecar that dies is started again by the next call. Calls that are safe to repeat are sent
    again by themselves; others raise `E_SIDECAR_LOST`, and their outcome is unknown.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        binary: str | os.PathLike[str] | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        """Starts `taskforce serve --root ROOT ARGS` and exchanges versions with it.

        `root`: The folder of the store; the sidecar's own default if absent.
        `binary`: The sidecar's binary; searched for if absent.
        `args`: More arguments of `taskforce serve`.
        `env`: The sidecar's environment; inherited if absent.
        `start_timeout`: Seconds that the sidecar may take to answer for the first time.
        """
        super().__init__(self.call)
        self.governor: GovernorCalls = GovernorCalls(self.call)
        self.task: TaskCalls = TaskCalls(self.call)
        self.store: StoreCalls = StoreCalls(self.call)
        self._launch = launch(root, binary, args, env, start_timeout)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._backoff = Backoff()
        self._owner = os.getpid()
        # The restart that is under way, which every thread waits for.
        self._restart: Future[Connection] | None = None
        self._connection = Connection(self._launch)

    @property
    def server(self) -> InitializeResult:
        """What the sidecar said of itself when it was last started."""
        return self._connection.server

    @property
    def pid(self) -> int:
        """The process id of the sidecar that was last started."""
        return self._connection.pid

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends a call by the method's name, for methods that this client has no types for."""
        return self._repeat(method, lambda connection: connection.call(method, params))

    def watch(self, run_id: str) -> Watch:
        """Returns an iterator that yields whenever any process changes the run.

        Every change after this call returns is noticed.
        """
        return Watch(run_id, lambda watch: self._subscribe(run_id, watch))

    def _subscribe(self, run_id: str, watch: Watch) -> Connection:
        def subscribe(connection: Connection) -> Connection:
            connection.watch(run_id, watch)
            return connection

        return self._repeat("governor.watch", subscribe)

    def _repeat(self, method: str, action: Callable[[Connection], T]) -> T:
        unknown = False
        for sends in itertools.count(1):
            try:
                return action(self._connected())
            except TaskforceError as error:
                if may_send_again(error, method, sends):
                    unknown = unknown or is_unknown(error)
                elif unknown and is_unanswered(error):
                    # It was sent to a sidecar that died, and no other one could be asked.
                    raise lost(error.message) from error
                else:
                    raise
        raise AssertionError("unreachable")

    def _connected(self) -> Connection:
        """Returns a sidecar that lives, after starting it again if need be."""
        if _fork.is_foreign(self._owner):
            raise _fork.forked(self._owner)
        connection = self._connection
        if connection.alive and not self._closing.is_set():
            return connection  # the usual
        with self._lock:
            if self._closing.is_set():
                raise closed()
            if self._connection.alive:
                return self._connection
            restart, mine = self._restart, Future[Connection]()
            if restart is None:
                self._restart = mine
        if restart is not None:
            return restart.result()
        return self._finish(mine)

    def _finish(self, restart: Future[Connection]) -> Connection:
        """Restarts on behalf of every thread that waits for the future."""
        try:
            connection = self._start_again()
        except BaseException as error:
            with self._lock:
                self._restart = None
            known = isinstance(error, TaskforceError)
            restart.set_exception(error if known else start_failed("the restart was interrupted"))
            raise
        with self._lock:
            self._restart = None
            replaced, self._connection = self._connection, connection
        restart.set_result(connection)
        replaced.retire(EXIT_GRACE)
        return connection

    def _start_again(self) -> Connection:
        lived = self._connection.lived
        for starts in itertools.count(1):
            if self._closing.wait(self._backoff.delay(lived)):
                raise closed()
            try:
                return Connection(self._launch)
            except TaskforceError as error:
                if starts == MAX_STARTS or not may_start_again(error):
                    raise
                lived = 0.0
        raise AssertionError("unreachable")

    def close(self, timeout: float = 10.0) -> None:
        """Ends the sidecar's input and waits until it has answered every call and is gone.

        Calls under way get their answers. After so many seconds the sidecar is killed, which
        releases nothing and loses nothing that it has acknowledged. In a process that was forked
        from the client's own, nothing happens.
        """
        if _fork.is_foreign(self._owner):
            return
        with self._lock:
            self._closing.set()
            restart = self._restart
        if restart is not None:
            restart.exception()
        self._connection.close(timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
