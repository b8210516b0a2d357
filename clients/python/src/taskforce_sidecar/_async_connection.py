"""One sidecar process, for the asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from typing import IO, Any, cast

from . import _fork
from ._connection import CREATION_FLAGS
from ._errors import TaskforceError, lost, start_failed, unsent
from ._generated import InitializeResult
from ._launch import EXIT_GRACE, READ_SIZE, Launch, Tail
from ._session import Listener, Session, handshake_error, initialize_params


class AsyncConnection:
    """A sidecar from its start to its end."""

    server: InitializeResult

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._session = Session()
        self._writing = asyncio.Lock()  # one drain at a time
        self._watching = asyncio.Lock()  # one watch or unwatch at a time
        self._closing = False
        self._tail = Tail()
        self.owner = os.getpid()
        self._started = time.monotonic()
        self._process = process
        self._stdin = cast(asyncio.StreamWriter, process.stdin)
        _fork.register(self)
        self._drainer = asyncio.create_task(self._drain())
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, launch: Launch) -> AsyncConnection:
        """Starts the sidecar and exchanges versions with it."""
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=launch.env,
                creationflags=CREATION_FLAGS,
            )
        except OSError as error:
            raise start_failed(f"cannot start {launch.command[0]}: {error}") from error
        connection = cls(process)
        await connection._initialize(launch.timeout)
        return connection

    @property
    def pid(self) -> int:
        """The process id of the sidecar."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether calls can still be sent."""
        return self._session.ended is None

    @property
    def lived(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def pipes(self) -> Iterable[IO[bytes]]:
        """Returns the end of the sidecar's input, as far as the event loop tells it."""
        pipe = self._stdin.get_extra_info("pipe")
        return [pipe] if pipe else []

    async def _initialize(self, timeout: float) -> None:
        try:
            answer = self.call("initialize", initialize_params())
            self.server = await asyncio.wait_for(answer, timeout)
            self._session.open(self.server)
        except asyncio.TimeoutError:
            await self._abort()
            raise start_failed(f"the sidecar did not answer within {timeout} seconds") from None
        except TaskforceError as error:
            await self._abort()
            raise handshake_error(error) from None
        except BaseException:
            self._kill()
            raise

    async def _abort(self) -> None:
        self._kill()
        await asyncio.shield(self._reader)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends one call and waits for its answer. A cancelled call is cancelled at the sidecar."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        id, frame = self._session.request(method, params, reply)
        written = False
        try:
            async with self._writing:
                if self._closing:
                    raise unsent("the sidecar's input was ended")
                self._stdin.write(frame)
                written = True
                await self._flush()
            return await reply
        finally:
            if not reply.done() or reply.cancelled():
                self._cancel(id, written)

    def _cancel(self, id: int, written: bool) -> None:
        frame = self._session.abandon(id, written)
        if frame and not self._closing:
            self._stdin.write(frame)

    async def _flush(self) -> None:
        try:
            await self._stdin.drain()
        except OSError:
            # It stopped reading, or is gone: nothing more can be asked of it.
            self._kill()

    async def _read(self) -> None:
        """Hands answers to those who wait for them, until the sidecar ends."""
        fault = None
        stdout = cast(asyncio.StreamReader, self._process.stdout)
        try:
            while data := await stdout.read(READ_SIZE):
                self._session.receive(data)
        except TaskforceError as error:
            fault = error
            self._kill()
        try:
            status = await asyncio.wait_for(self._process.wait(), EXIT_GRACE)
        except asyncio.TimeoutError:
            # It closed its output but did not end.
            self._kill()
            status = await self._process.wait()
        await asyncio.wait({self._drainer}, timeout=EXIT_GRACE)
        self._session.lose(fault or lost(self._tail.obituary(status)))
        self._stdin.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._stdin.wait_closed(), EXIT_GRACE)

    async def _drain(self) -> None:
        stderr = cast(asyncio.StreamReader, self._process.stderr)
        while data := await stderr.read(READ_SIZE):
            self._tail.write(data)

    async def watch(self, run_id: str, listener: Listener) -> None:
        """Tells the listener of every change of the run from now on."""
        async with self._watching:
            self._session.listen(run_id, listener)
            try:
                await self.call("governor.watch", {"runId": run_id})
            except BaseException:
                self._session.unlisten(run_id, listener)
                raise

    async def unwatch(self, run_id: str, listener: Listener) -> None:
        """Ends what `watch` began."""
        async with self._watching:
            if self._session.unlisten(run_id, listener):
                await self.call("governor.unwatch", {"runId": run_id})

    def retire(self) -> None:
        """Ends the sidecar's input: it answers what it has taken, and exits."""
        self._closing = True
        self._stdin.close()

    async def close(self, timeout: float) -> None:
        """Retires the sidecar and waits until it is gone."""
        self.retire()
        await asyncio.wait({self._reader}, timeout=timeout)
        if not self._reader.done():
            await self._abort()
