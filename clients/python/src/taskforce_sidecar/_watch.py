"""Iterators over the changes of a run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from . import _fork
from ._errors import TaskforceError
from ._generated import ChangedParams

if TYPE_CHECKING:
    from ._async_connection import AsyncConnection
    from ._connection import Connection


class Watch:
    """An iterator over the changes of one run.

    It yields after any process changed the run. Changes that come faster than they are consumed
    are one. After a restart of the sidecar it yields at once, as changes may have been missed. It
    ends when it is closed, by any thread, or when the client is.
    """

    def __init__(self, run_id: str, subscribe: Callable[[Watch], Connection]) -> None:
        self._run_id = run_id
        self._subscribe = subscribe
        self._state = threading.Condition()
        self._changed = False
        self._lost = False
        self._closed = False
        self._connection = subscribe(self)

    def changed(self) -> None:
        """Called when the run changed."""
        with self._state:
            self._changed = True
            self._state.notify_all()

    def lost(self) -> None:
        """Called when the sidecar is gone."""
        with self._state:
            self._lost = True
            self._state.notify_all()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> ChangedParams:
        if _fork.is_foreign(self._connection.owner):
            raise _fork.forked(self._connection.owner)
        with self._state:
            self._state.wait_for(lambda: self._changed or self._lost or self._closed)
            if self._closed:
                raise StopIteration
            resubscribe, self._lost, self._changed = self._lost, False, False
        if resubscribe:
            try:
                self._connection = self._subscribe(self)
            except TaskforceError as error:
                self.close()
                if error.code == "E_STORE_CLOSED":
                    raise StopIteration from None
                raise
            if self._closed:
                self._unwatch()
                raise StopIteration
        return {"runId": self._run_id}

    def close(self) -> None:
        """Ends the iteration."""
        if _fork.is_foreign(self._connection.owner):
            return
        with self._state:
            if self._closed:
                return
            self._closed = True
            self._state.notify_all()
        self._unwatch()

    def _unwatch(self) -> None:
        # A sidecar that is gone watches no more.
        with contextlib.suppress(TaskforceError):
            self._connection.unwatch(self._run_id, self)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncWatch:
    """An asynchronous iterator over the changes of one run; see `Watch`.

    It watches from `async with` on, or else from the first step of the iteration.
    """

    def __init__(
        self, run_id: str, subscribe: Callable[[AsyncWatch], Awaitable[AsyncConnection]]
    ) -> None:
        self._run_id = run_id
        self._subscribe = subscribe
        self._connection: AsyncConnection | None = None
        self._event: asyncio.Event | None = None
        self._lost = False
        self._closed = False

    def changed(self) -> None:
        """Called when the run changed."""
        if self._event:
            self._event.set()

    def lost(self) -> None:
        """Called when the sidecar is gone."""
        self._lost = True
        self.changed()

    async def _start(self) -> asyncio.Event:
        if self._event is None:
            self._event = asyncio.Event()
            self._connection = await self._subscribe(self)
        return self._event

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> ChangedParams:
        event = await self._start()
        await event.wait()
        if self._closed:
            raise StopAsyncIteration
        event.clear()
        if self._lost:
            self._lost = False
            try:
                self._connection = await self._subscribe(self)
            except TaskforceError as error:
                await self.close()
                if error.code == "E_STORE_CLOSED":
                    raise StopAsyncIteration from None
                raise
        return {"runId": self._run_id}

    async def close(self) -> None:
        """Ends the iteration."""
        if self._closed:
            return
        self._closed = True
        self.changed()
        if self._connection:
            # A sidecar that is gone watches no more.
            with contextlib.suppress(TaskforceError):
                await self._connection.unwatch(self._run_id, self)

    async def __aenter__(self) -> AsyncWatch:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
