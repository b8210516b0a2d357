"""Measures both clients against the loops that a host would write by hand over the same pipe.

    python bench/overhead.py [BINARY]

One call is in flight at a time. Loop and client take turns within each round, so that whatever
the machine does meanwhile happens to both; a ratio is the median over the rounds. Everything runs
on one core where the platform allows that: there a round trip costs least and the client shows
most, and the figures do not depend on which core the kernel wakes a process on.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from taskforce_sidecar import AsyncClient, Client
from taskforce_sidecar._binary import find_binary

ROUNDS = 101
CALLS = 100


def request(number: int) -> bytes:
    """Returns a line that asks for an answer at once."""
    message = {"jsonrpc": "2.0", "id": number, "method": "ping", "params": {}}
    return json.dumps(message).encode() + b"\n"


class Pipe:
    """A blocking loop written by hand."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def ping(self) -> Any:
        assert self.process.stdin and self.process.stdout
        self.number += 1
        self.process.stdin.write(request(self.number))
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def close(self) -> None:
        self.process.communicate()


class AsyncPipe:
    """An asyncio loop written by hand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.number = 0

    async def ping(self) -> Any:
        assert self.process.stdin and self.process.stdout
        self.number += 1
        self.process.stdin.write(request(self.number))
        await self.process.stdin.drain()
        return json.loads(await self.process.stdout.readline())["result"]


def timed(call: Callable[[], Any]) -> float:
    """Returns the median of so many calls, in microseconds."""
    times: list[float] = []
    for _ in range(CALLS):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return 1e6 * statistics.median(times)


async def timed_async(call: Callable[[], Awaitable[Any]]) -> float:
    """Returns the median of so many calls, in microseconds."""
    times: list[float] = []
    for _ in range(CALLS):
        before = time.perf_counter()
        await call()
        times.append(time.perf_counter() - before)
    return 1e6 * statistics.median(times)


def report(name: str, hand: list[float], client: list[float]) -> None:
    ratio = statistics.median(c / h for c, h in zip(client, hand))
    print(
        f"{name:<10} hand-written {statistics.median(hand):6.1f} µs   "
        f"client {statistics.median(client):6.1f} µs   ratio {ratio:.2f}"
    )


def blocking(command: list[str], root: str) -> None:
    """Measures the blocking client."""
    hand = Pipe(*command)
    with Client(root, binary=command[0]) as client:
        pairs = [(timed(hand.ping), timed(client.ping)) for _ in range(ROUNDS)]
    hand.close()
    report("blocking", *map(list, zip(*pairs)))


async def asynchronous(command: list[str], root: str) -> None:
    """Measures the asyncio client."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    hand = AsyncPipe(process)
    async with AsyncClient(root, binary=command[0]) as client:
        pairs = [
            (await timed_async(hand.ping), await timed_async(client.ping)) for _ in range(ROUNDS)
        ]
    assert process.stdin
    process.stdin.close()
    await process.wait()
    report("asyncio", *map(list, zip(*pairs)))


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    binary = find_binary(sys.argv[1] if len(sys.argv) > 1 else None)
    with tempfile.TemporaryDirectory() as root:
        command = [binary, "serve", "--root", root]
        blocking(command, root)
        asyncio.run(asynchronous(command, root))


if __name__ == "__main__":
    main()
