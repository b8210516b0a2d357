"""The protocol as both clients speak it, without any input or output of its own.

A `Session` is one connection's state: which requests are in flight, and who listens to which run.
It turns calls into frames, and bytes that arrived into answers. Moving the bytes, and guarding the
session where threads share it, is left to the connection that owns it.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from ._errors import ErrorDetails, TaskforceError, lost, start_failed, unsent
from ._generated import PROTOCOL, ErrorData, InitializeResult
from ._version import __version__

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder()


class Reply(Protocol):
    """Where an answer goes. The futures of `concurrent.futures` and asyncio both are one."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...


class Listener(Protocol):
    """Who is told that a run changed."""

    def changed(self) -> None: ...
    def lost(self) -> None: ...


class Session:
    """The state of one connection."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        # None stands for a request that nobody waits for any more.
        self._pending: dict[int, Reply | None] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._partial: list[bytes] = []
        self._max_frame: int | None = None
        # Why no more calls can be sent.
        self.ended: TaskforceError | None = None

    @property
    def waits(self) -> bool:
        """Whether an answer is due."""
        return bool(self._pending)

    def request(self, method: str, params: Mapping[str, Any], reply: Reply) -> tuple[int, bytes]:
        """Returns the id and the frame of a request, whose answer goes to `reply`."""
        if self.ended:
            raise unsent(self.ended.message)
        id = next(self._ids)
        frame = encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        if self._max_frame and len(frame) > self._max_frame + len(b"\n"):
            # The sidecar would skip it and could not say whose it was.
            raise TaskforceError(
                "E_INVALID_REQUEST",
                f"{method} takes {len(frame)} bytes; the sidecar accepts {self._max_frame}",
            )
        self._pending[id] = reply
        return id, frame

    def abandon(self, id: int, sent: bool) -> bytes | None:
        """Gives up a request. Returns the frame that cancels it, if it was sent and is not over."""
        if id not in self._pending:
            return None
        if not sent:
            del self._pending[id]
            return None
        self._pending[id] = None
        return encode({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})

    def receive(self, data: bytes) -> None:
        """Takes bytes from the sidecar, cut anywhere. Raises if they are not protocol."""
        for line in self._lines(data):
            try:
                text = line.decode()
                message, end = _DECODER.raw_decode(text)
            except ValueError:
                message, end, text = None, 0, ""
            if end != len(text):  # more than one JSON text
                message = None
            if not isinstance(message, dict):
                raise lost(f"the sidecar wrote something that is not protocol: {line[:200]!r}")
            self._dispatch(cast("dict[str, Any]", message))

    def _lines(self, data: bytes) -> Iterator[bytes]:
        """Cuts the stream into lines, at line feeds only: other separators are text."""
        if not self._partial and data.find(b"\n") == len(data) - 1:
            line = data.strip()  # the usual: one answer, whole
            if line:
                yield line
            return
        rest, *later = data.split(b"\n")
        self._partial.append(rest)
        for rest in later:
            line = b"".join(self._partial).strip()
            self._partial = [rest] if rest else []
            if line:
                yield line

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if message["method"] == "governor.changed":
                for listener in self._listeners.get(message["params"]["runId"], []):
                    listener.changed()
            return
        id = message.get("id")
        reply = self._pending.pop(self._only_pending(message) if id is None else id, None)
        error = _refusal(message["error"]) if "error" in message else None
        if error and error.code == "E_SHUTTING_DOWN":
            # Somebody else asked it to end. It still answers what it took before.
            self.ended = error
        if reply is None or reply.done():
            return
        if error:
            reply.set_exception(error)
        else:
            reply.set_result(message.get("result"))

    def _only_pending(self, message: dict[str, Any]) -> int:
        """Says whose frame an error without an id refuses; 0 is nobody's."""
        if len(self._pending) > 1:
            raise lost(f"the sidecar refused a frame without saying whose: {message.get('error')}")
        return next(iter(self._pending), 0)

    def lose(self, error: TaskforceError) -> None:
        """Ends the session: whoever still waits gets the error."""
        self.ended = error
        pending, self._pending = self._pending, {}
        for reply in pending.values():
            if reply is not None and not reply.done():
                reply.set_exception(copy.copy(error))
        listeners, self._listeners = self._listeners, {}
        for group in listeners.values():
            for listener in group:
                listener.lost()

    def listen(self, run_id: str, listener: Listener) -> None:
        """Tells the listener of every change of the run from now on."""
        self._listeners.setdefault(run_id, []).append(listener)

    def unlisten(self, run_id: str, listener: Listener) -> bool:
        """Forgets the listener. Returns whether it was the run's last one."""
        group = self._listeners.get(run_id, [])
        if listener not in group:
            return False
        group.remove(listener)
        if not group:
            del self._listeners[run_id]
        return not group

    def open(self, server: InitializeResult) -> None:
        """Takes the answer to `initialize`. Raises if the sidecar speaks another protocol."""
        if server["protocol"] != PROTOCOL:
            raise _mismatch([server["protocol"]])
        self._max_frame = server["capabilities"]["max_frame_bytes"]


def encode(message: Mapping[str, Any]) -> bytes:
    """Returns the frame of a message. Raises what `json` does for values that JSON cannot hold."""
    return _ENCODER.encode(message).encode() + b"\n"


def initialize_params() -> dict[str, Any]:
    """Says who we are."""
    client = {"name": "taskforce-sidecar for Python", "version": __version__}
    return {"protocol": PROTOCOL, "client": client}


def handshake_error(error: TaskforceError) -> TaskforceError:
    """Returns the error to raise when `initialize` fails."""
    # Whatever code another version gives it.
    details = cast(ErrorData, error.details)
    if details.get("reason") == "protocol":
        return _mismatch(details.get("supported", []))
    if error.code == "E_SIDECAR_LOST":
        return start_failed(error.message)
    return error


def _mismatch(theirs: list[int]) -> TaskforceError:
    served = " or ".join(map(str, theirs))
    return TaskforceError(
        "E_PROTOCOL",
        f"this client speaks protocol {PROTOCOL}, the sidecar {served}; install matching versions",
        {"code": "E_PROTOCOL", "retryable": False, "supported": theirs},
    )


def _refusal(error: Mapping[str, Any]) -> TaskforceError:
    data = error.get("data")
    if not isinstance(data, dict) or "code" not in data or "retryable" not in data:
        return TaskforceError("E_INTERNAL", str(error.get("message")))
    details = cast(ErrorDetails, data)
    return TaskforceError(details["code"], str(error.get("message")), details)
