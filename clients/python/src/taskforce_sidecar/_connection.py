"""One sidecar process, for the blocking client.

Callers write their own frames. Answers are read by whoever holds the role of the reader, on behalf
of all: a caller that finds the role free takes it until its own answer is there, because waking
another thread costs as much as the round trip itself. While nobody calls, and as long as several
do, a thread of the connection has the role; it stands aside once calls come one by one. Another
thread drains stderr, so that the sidecar never blocks on it.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, cast

from . import _fork
from ._errors import TaskforceError, lost, start_failed, unsent
from ._generated import InitializeResult
from ._launch import EXIT_GRACE, READ_SIZE, Launch, Tail
from ._reply import Reply
from ._session import Listener, Session, handshake_error, initialize_params

# Without it, a host with a window but no console would show one on Windows.
CREATION_FLAGS = getattr(subprocess, "CREATE_NO_WINDOW", 0)

# Whether a caller can wait for answers without taking any of them: an interrupt must lose none.
_CAN_WAIT = sys.platform != "win32"
# How long the connection's own thread stands aside after the last call, in seconds.
_ASIDE = 0.01


def _waiter(pipe: IO[bytes]) -> Callable[[], object]:
    """Returns a function that waits until something has arrived."""
    if sys.platform == "win32":
        return lambda: None
    arrival = select.poll()
    arrival.register(pipe, select.POLLIN)
    return arrival.poll


class Connection:
    """A sidecar from its start to its end."""

    def __init__(self, launch: Launch) -> None:
        """Starts the sidecar and exchanges versions with it."""
        self._session = Session()
        self._lock = threading.Lock()  # guards the session
        self._writing = threading.Lock()  # one frame at a time
        self._watching = threading.Lock()  # one watch or unwatch at a time
        self._reading = threading.Lock()  # the role of the reader
        self._needed = threading.Event()  # that the connection's thread takes the role
        self._frames = 0  # how many were sent
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
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._await_arrival = _waiter(self._stdout)
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
        self._needed.set()
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
            if _CAN_WAIT and self._reading.acquire(blocking=False):
                self._read_until(reply)
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
            self._frames += 1
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

    def _read_until(self, reply: Reply) -> None:
        """Reads, in the role that the caller has taken, until the reply is there."""
        taking = False
        try:
            while not reply.done() and not self._stdout.closed:
                self._await_arrival()
                taking = True
                if not self._receive():
                    break  # the connection's thread learns why
                taking = False
        except BaseException:
            if taking:
                # The interrupt may have taken away an answer that somebody waits for.
                self._process.kill()
            raise
        finally:
            self._reading.release()
            if not reply.done() or self._session.waits:
                self._needed.set()

    def _receive(self) -> bool:
        """Hands answers to those who wait for them. Returns false at the end of the output."""
        data = self._stdout.read(READ_SIZE)
        if data and not self._fault:
            try:
                with self._lock:
                    self._session.receive(data)
            except TaskforceError as error:
                self._fault = error
                self._process.kill()
        return bool(data)

    def _read(self) -> None:
        """Reads whenever no caller does, until the sidecar ends."""
        while self._read_while_needed():
            self._stand_aside()
        self._bury()

    def _read_while_needed(self) -> bool:
        """Reads until calls come one by one. Returns false at the end of the output."""
        while True:
            with self._reading:
                if not self._receive():
                    return False
            if _CAN_WAIT and not self._session.waits:
                return True

    def _stand_aside(self) -> None:
        """Leaves the reading to callers, until one needs help or all are silent."""
        seen = -1
        while seen != self._frames:
            seen = self._frames
            if self._needed.wait(_ASIDE):
                break
        self._needed.clear()

    def _bury(self) -> None:
        """Learns how the sidecar ended, and tells those who wait for it."""
        try:
            status = self._process.wait(EXIT_GRACE)
        except subprocess.TimeoutExpired:
            # It closed its output but did not end.
            self._process.kill()
            status = self._process.wait()
        self._drainer.join(EXIT_GRACE)
        with self._lock:
            self._session.lose(self._fault or lost(self._tail.obituary(status)))
        with self._reading:
            self._stdout.close()
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
        self._needed.set()

    def close(self, timeout: float) -> None:
        """Retires the sidecar and waits until it is gone."""
        deadline = time.monotonic() + timeout
        self.retire(timeout)
        self._reader.join(max(0.0, deadline - time.monotonic()))
        if self._reader.is_alive():
            self._abort()
