"""One sidecar process, for the blocking client.

Callers write their own frames and wait for the answers, which `Reading` has somebody read. A thread
drains stderr, so that the sidecar never blocks on it.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from typing import IO, Any, cast

from . import _fork
from ._errors import TaskforceError, lost, start_failed, unsent
from ._generated import InitializeResult
from ._launch import EXIT_GRACE, READ_SIZE, Launch, Tail
from ._reading import Reading
from ._reply import Reply
from ._session import Listener, Session, handshake_error, initialize_params

# Without it, a host with a window but no console would show one on Windows.
CREATION_FLAGS = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class Connection:
    """A sidecar from its start to its end."""

    def __init__(self, launch: Launch) -> None:
        """Starts the sidecar and exchanges versions with it."""
        self._session = Session()
        self._lock = threading.Lock()  # guards the session
        self._writing = threading.Lock()  # one frame at a time
        self._watching = threading.Lock()  # one watch or unwatch at a time
        self._fault: TaskforceError | None = None
        self._closing = False
        self._tail = Tail()
        self.owner = os.getpid()
        self._started = time.monotonic()
        try:
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=launch.env,
                bufsize=0,
                creationflags=CREATION_FLAGS,
            )
        except OSError as error:
            raise start_failed(f"cannot start {launch.command[0]}: {error}") from error
        _fork.register(self)
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._reading = Reading(cast("IO[bytes]", self._process.stdout), self)
        self._drainer = threading.Thread(target=self._drain, name="taskforce-stderr", daemon=True)
        self._drainer.start()
        self._reader = threading.Thread(target=self._read, name="taskforce-stdout", daemon=True)
        self._reader.start()
        self.server = self._initialize(launch.timeout)

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
        """Returns the ends of the pipes to the sidecar."""
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        return [pipe for pipe in pipes if pipe]

    def _initialize(self, timeout: float) -> InitializeResult:
        reply = Reply()
        try:
            with self._lock:
                _, frame = self._session.request("initialize", initialize_params(), reply)
            self._send(frame)
            server: InitializeResult = reply.result(timeout)
            self._session.open(server)
            return server
        except TimeoutError:
            self._abort()
            raise start_failed(f"the sidecar did not answer within {timeout} seconds") from None
        except TaskforceError as error:
            self._abort()
            raise handshake_error(error) from None
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        self._process.kill()
        self._reading.call_back()
        self._reader.join()

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends one call and waits for its answer."""
        reply = Reply()
        with self._lock:
            id, frame = self._session.request(method, params, reply)
        sent = False
        try:
            self._send(frame)
            sent = True
            self._reading.until(reply)
            return reply.result()
        finally:
            if not reply.done():  # interrupted, for example by Ctrl-C
                self._cancel(id, sent)

    def _cancel(self, id: int, sent: bool) -> None:
        with self._lock:
            frame = self._session.abandon(id, sent)
        if frame and not self._closing:
            self._send(frame)

    def _send(self, frame: bytes) -> None:
        with self._writing:
            if self._closing:
                raise unsent("the sidecar's input was ended")
            try:
                written = self._stdin.write(frame)
                while written < len(frame):
                    written += self._stdin.write(memoryview(frame)[written:])
            except BaseException as error:
                # Either it reads no more, or an interrupt cut the frame, which would garble the
                # next one: nothing more can be asked of it.
                self._process.kill()
                if not isinstance(error, (OSError, ValueError)):
                    raise

    def take(self, data: bytes) -> None:
        """Hands answers to those who wait for them."""
        if self._fault:
            return
        try:
            with self._lock:
                self._session.receive(data)
        except TaskforceError as error:
            self._fault = error
            self._process.kill()

    def waits(self) -> bool:
        """Says whether an answer is due."""
        return self._session.waits

    def give_up(self) -> None:
        """Ends the sidecar, because something that it wrote was lost."""
        self._process.kill()

    def _read(self) -> None:
        """Sees that answers are read until the sidecar ends, and tells those who still wait."""
        self._reading.run()
        try:
            status = self._process.wait(EXIT_GRACE)
        except subprocess.TimeoutExpired:
            # It closed its output but did not end.
            self._process.kill()
            status = self._process.wait()
        self._drainer.join(EXIT_GRACE)
        with self._lock:
            self._session.lose(self._fault or lost(self._tail.obituary(status)))
        self._reading.close()
        with self._writing:
            self._stdin.close()

    def _drain(self) -> None:
        with cast("IO[bytes]", self._process.stderr) as stderr:
            while data := stderr.read(READ_SIZE):
                self._tail.write(data)

    def watch(self, run_id: str, listener: Listener) -> None:
        """Tells the listener of every change of the run from now on."""
        with self._watching:
            with self._lock:
                self._session.listen(run_id, listener)
            try:
                self.call("governor.watch", {"runId": run_id})
            except BaseException:
                with self._lock:
                    self._session.unlisten(run_id, listener)
                raise

    def unwatch(self, run_id: str, listener: Listener) -> None:
        """Ends what `watch` began."""
        with self._watching:
            with self._lock:
                last = self._session.unlisten(run_id, listener)
            if last:
                self.call("governor.unwatch", {"runId": run_id})

    def retire(self, timeout: float) -> None:
        """Ends the sidecar's input: it answers what it has taken, and exits."""
        if not self._writing.acquire(timeout=timeout):
            # Somebody's frame does not get through: the sidecar no longer reads.
            self._process.kill()
            self._writing.acquire()
        self._closing = True
        self._stdin.close()
        self._writing.release()
        self._reading.call_back()

    def close(self, timeout: float) -> None:
        """Retires the sidecar and waits until it is gone."""
        deadline = time.monotonic() + timeout
        self.retire(timeout)
        self._reader.join(max(0.0, deadline - time.monotonic()))
        if self._reader.is_alive():
            self._abort()
