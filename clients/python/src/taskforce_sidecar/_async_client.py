"""The asyncio client."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import _fork
from ._async_connection import AsyncConnection
from ._errors import TaskforceError, closed, lost
from ._generated import (
    AsyncConnectionCalls,
    AsyncGovernorCalls,
    AsyncStoreCalls,
    AsyncTaskCalls,
    InitializeResult,
)
from ._launch import (
    MAX_STARTS,
    Backoff,
    is_unanswered,
    is_unknown,
    launch,
    may_send_again,
    may_start_again,
)
from ._watch import AsyncWatch

T = TypeVar("T")


class AsyncClient(AsyncConnectionCalls):
    """A sidecar and the calls that it serves, for the tasks of one event loop.

    `async with` starts it; otherwise the first call does. A sidecar that dies is started again by
    the next call. Calls that are safe to repeat are sent again by themselves; others raise
    `E_SIDECAR_LOST`, and their outcome is unknown.

    A call whose task is cancelled is cancelled at the sidecar, too: it is dropped if it is still
    queued. One that has begun takes effect all the same, and only a read can tell.
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
        """Prepares to start `taskforce serve --root ROOT ARGS`.

        `root`: The folder of the store; the sidecar's own default if absent.
        `binary`: The sidecar's binary; searched for if absent.
        `args`: More arguments of `taskforce serve`.
        `env`: The sidecar's environment; inherited if absent.
        `start_timeout`: Seconds that the sidecar may take to answer for the first time.
        """
        super().__init__(self.call)
        self.governor: AsyncGovernorCalls = AsyncGovernorCalls(self.call)
        self.task: AsyncTaskCalls = AsyncTaskCalls(self.call)
        self.store: AsyncStoreCalls = AsyncStoreCalls(self.call)
        self._launch = launch(root, binary, args, env, start_timeout)
        self._backoff = Backoff()
        self._owner = os.getpid()
        self._connection: AsyncConnection | None = None
        # The start that is under way, which every call waits for.
        self._starting: asyncio.Task[AsyncConnection] | None = None
        self._closed = False

    @property
    def server(self) -> InitializeResult:
        """What the sidecar said of itself when it was last started."""
        return self._started().server

    @property
    def pid(self) -> int:
        """The process id of the sidecar that was last started."""
        return self._started().pid

    def _started(self) -> AsyncConnection:
        if self._connection is None:
            raise RuntimeError("the client was not started; use `async with`")
        return self._connection

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends a call by the method's name, for methods that this client has no types for."""
        return await self._repeat(method, lambda connection: connection.call(method, params))

    def watch(self, run_id: str) -> AsyncWatch:
        """Returns an asynchronous iterator that yields whenever any process changes the run."""
        return AsyncWatch(run_id, lambda watch: self._subscribe(run_id, watch))

    async def _subscribe(self, run_id: str, watch: AsyncWatch) -> AsyncConnection:
        async def subscribe(connection: AsyncConnection) -> AsyncConnection:
            await connection.watch(run_id, watch)
            return connection

        return await self._repeat("governor.watch", subscribe)

    async def _repeat(self, method: str, action: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        unknown = False
        for sends in itertools.count(1):
            try:
                return await action(await self._connected())
            except TaskforceError as error:
                if may_send_again(error, method, sends):
                    unknown = unknown or is_unknown(error)
                elif unknown and is_unanswered(error):
                    # It was sent to a sidecar that died, and no other one could be asked.
                    raise lost(error.message) from error
                else:
                    raise
        raise AssertionError("unreachable")

    async def _connected(self) -> AsyncConnection:
        """Returns a sidecar that lives, after starting it if need be."""
        if _fork.is_foreign(self._owner):
            raise _fork.forked(self._owner)
        if self._closed:
            raise closed()
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        # A cancelled call does not stop the start that others wait for.
        return await asyncio.shield(self._starting)

    async def _start(self) -> AsyncConnection:
        try:
            if self._connection is None:
                self._connection = await AsyncConnection.start(self._launch)
            else:
                replaced = self._connection
                self._connection = await self._start_again(replaced.lived)
                replaced.retire()
            return self._connection
        finally:
            self._starting = None

    async def _start_again(self, lived: float) -> AsyncConnection:
        for starts in itertools.count(1):
            await asyncio.sleep(self._backoff.delay(lived))
            if self._closed:
                raise closed()
            try:
                return await AsyncConnection.start(self._launch)
            except TaskforceError as error:
                if starts == MAX_STARTS or not may_start_again(error):
                    raise
                lived = 0.0
        raise AssertionError("unreachable")

    async def close(self, timeout: float = 10.0) -> None:
        """Ends the sidecar's input and waits until it has answered every call and is gone.

        Calls under way get their answers. After so many seconds the sidecar is killed, which
        releases nothing and loses nothing that it has acknowledged. In a process that was forked
        from the client's own, nothing happens.
        """
        if _fork.is_foreign(self._owner):
            return
        self._closed = True
        if self._starting is not None:
            await asyncio.wait({self._starting})
        if self._connection is not None:
            await self._connection.close(timeout)

    async def __aenter__(self) -> AsyncClient:
        await self._connected()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
