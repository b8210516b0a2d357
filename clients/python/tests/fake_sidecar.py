"""What a fake sidecar needs: it reads requests and writes answers, badly if a test wants so."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

SERVER: dict[str, Any] = {
    "protocol": 1,
    "server": {"name": "fake"},
    "engine": {"name": "none"},
    "store": {"id": "0", "schema_version": 1, "location": "nowhere"},
    "capabilities": {
        "max_frame_bytes": 1000,
        "max_in_flight": 8,
        "watch": True,
        "watch_by": "poll",
    },
    "pinned": None,
}


def requests() -> Iterator[dict[str, Any]]:
    """Yields what the client sends, after answering `initialize`."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["method"] == "initialize":
            answer(message, SERVER)
        else:
            yield message


def answer(request: dict[str, Any], result: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")


def refuse(id: Any, data: dict[str, Any]) -> None:
    error = {"code": -32000, "message": "no", "data": data}
    write(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode() + b"\n")


def write(data: bytes) -> None:
    os.write(1, data)
