"""Cancelling, closing and restarting, by fake sidecars that can be held at any point."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError
from taskforce_sidecar._launch import MAX_SENDS, MAX_STARTS, Backoff

from .runs import kill, refusal

Fake = Callable[[str], str]

# Holds every call "hold" until it is cancelled or the input ends; "all_held" is answered when so
# many are held.
HOLDING = """
    held, waiting = {}, None
    for request in requests():
        method = request["method"]
        if method == "hold":
            held[request["id"]] = request
        elif method == "all_held":
            waiting = request
        elif method == "$/cancelRequest":
            del held[request["params"]["id"]]
            refuse(request["params"]["id"], {"code": "E_CANCELLED", "retryable": False})
        elif method == "count":
            answer(request, len(held))
        if waiting and len(held) == waiting["params"]["of"]:
            answer(waiting, None)
            waiting = None
    for request in held.values():
        answer(request, "drained")
"""


def test_cancelling_a_task_cancels_the_request(fake: Fake) -> None:
    async def main() -> None:
        async with AsyncClient(binary=fake(HOLDING)) as client:
            all_held = asyncio.create_task(client.call("all_held", {"of": 1}))
            held = asyncio.create_task(client.call("hold", {}))
            await all_held
            held.cancel()
            with pytest.raises(asyncio.CancelledError):
                await held
            assert await client.call("count", {}) == 0

    asyncio.run(main())


@pytest.mark.parametrize("alone", [True, False])
def test_an_interrupted_call_cancels_the_request(alone: bool, fake: Fake) -> None:
    """Whether the main thread reads for itself or another one reads for it."""
    with Client(binary=fake(HOLDING)) as client, ThreadPoolExecutor() as pool:

        def interrupt() -> None:
            if not alone:
                all_held.result()
            while not client._connection._session.waits:
                time.sleep(0.001)
            signal.pthread_kill(main, signal.SIGINT)

        pid, main = client.pid, threading.get_ident()
        if not alone:
            all_held = pool.submit(client.call, "all_held", {"of": 1})
        for _ in range(2):  # calls that come one by one are read for by whoever makes them
            assert client.call("count", {}) == 0
        interrupted = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.call("hold", {})
        interrupted.result()
        assert client.call("count", {}) == 0
        assert client.pid == pid


def test_closing_drains_what_is_pending(fake: Fake) -> None:
    with ThreadPoolExecutor() as pool:
        client = Client(binary=fake(HOLDING))
        all_held = pool.submit(client.call, "all_held", {"of": 3})
        held = [pool.submit(client.call, "hold", {}) for _ in range(3)]
        all_held.result()
        client.close()
        assert [future.result() for future in held] == ["drained"] * 3
        client.close()
    assert refusal(client.ping).code == "E_STORE_CLOSED"


def test_closing_drains_what_is_pending_async(fake: Fake) -> None:
    async def main() -> None:
        async with AsyncClient(binary=fake(HOLDING)) as client:
            all_held = asyncio.create_task(client.call("all_held", {"of": 3}))
            held = [asyncio.create_task(client.call("hold", {"of": 3})) for _ in range(3)]
            await all_held
        assert await asyncio.gather(*held) == ["drained"] * 3
        with pytest.raises(TaskforceError, match="E_STORE_CLOSED"):
            await client.ping()

    asyncio.run(main())


def test_closing_kills_a_sidecar_that_does_not_end(fake: Fake) -> None:
    binary = fake("""
        import signal
        for request in requests():
            answer(request, {})
        signal.pause()
    """)
    client = Client(binary=binary)
    client.ping()
    client.close(timeout=0.1)
    assert not client._connection.alive

    async def main() -> None:
        other = AsyncClient(binary=binary)
        await other.ping()
        await other.close(timeout=0.1)

    asyncio.run(main())


# Counts its starts in a file, and dies on the call "die" without an answer.
MORTAL = """
    path = sys.argv[3] + "/starts"
    starts = len(open(path).read()) if os.path.exists(path) else 0
    open(path, "a").write("x")
    for request in requests():
        if request["method"] == "governor.reserve" and starts < request["params"]["until"]:
            os.kill(os.getpid(), 9)
        if request["method"] == "task.open":
            os.kill(os.getpid(), 9)
        if request["method"] == "task.claim" and starts == 0:
            refuse(request["id"], {"code": "E_SHUTTING_DOWN", "retryable": False})
            continue
        answer(request, starts)
"""


def test_resending_stops_at_the_first_answer(fake: Fake, tmp_path: Path) -> None:
    with Client(tmp_path, binary=fake(MORTAL)) as client:
        assert client.call("governor.reserve", {"until": 2}) == 2


def test_resending_ends(fake: Fake, tmp_path: Path) -> None:
    with Client(tmp_path, binary=fake(MORTAL)) as client:
        error = refusal(lambda: client.call("governor.reserve", {"until": 99}))
    assert error.code == "E_SIDECAR_LOST"
    assert "by signal 9" in error.message
    assert (tmp_path / "starts").read_text() == "x" * MAX_SENDS


def test_what_could_double_is_not_resent(fake: Fake, tmp_path: Path) -> None:
    with Client(tmp_path, binary=fake(MORTAL)) as client:
        error = refusal(lambda: client.call("task.open", {}))
        assert error.code == "E_SIDECAR_LOST"
        assert error.details.get("outcome") == "unknown"
        assert not error.retryable
        assert client.call("task.get", {}) == 1


def test_a_sidecar_that_shuts_down_is_replaced(fake: Fake, tmp_path: Path) -> None:
    with Client(tmp_path, binary=fake(MORTAL)) as client:
        old = client._connection
        assert client.call("task.claim", {}) == 1
        old._reader.join(10.0)
        assert not old._reader.is_alive()


def test_a_sidecar_that_shuts_down_is_replaced_async(fake: Fake, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path, binary=fake(MORTAL)) as client:
            old = client._started()
            assert await client.call("task.claim", {}) == 1
            await asyncio.wait_for(old._reader, 10.0)

    asyncio.run(main())


def test_resending_async(fake: Fake, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path, binary=fake(MORTAL)) as client:
            assert await client.call("governor.reserve", {"until": 2}) == 2
            with pytest.raises(TaskforceError, match="E_SIDECAR_LOST"):
                await client.call("task.open", {})
            assert await client.call("task.get", {}) == 3

    asyncio.run(main())


def test_a_restart_that_fails_is_reported_once_for_all(fake: Fake, tmp_path: Path) -> None:
    binary = fake(MORTAL)
    threads = 6
    with Client(tmp_path, binary=binary) as client, ThreadPoolExecutor(threads) as pool:
        Path(binary).write_text("#!/bin/sh\necho broken >&2; exit 1\n")
        kill(client.pid)
        calls = [pool.submit(client.call, "task.list", {}) for _ in range(threads)]
        errors = [call.exception() for call in calls]
    for error in errors:
        assert isinstance(error, TaskforceError)
        assert error.code in ("E_SIDECAR_START", "E_SIDECAR_LOST")
        assert "broken" in error.message


def test_closing_ends_a_restart(fake: Fake, tmp_path: Path) -> None:
    async def main() -> Any:
        binary = fake(MORTAL)
        client = AsyncClient(tmp_path, binary=binary)
        await client.ping()
        Path(binary).write_text("#!/bin/sh\nexit 1\n")
        kill(client.pid)
        call = asyncio.create_task(client.call("task.list", {}))
        while client._starting is None:
            await asyncio.sleep(0)
        await client.close()
        return await asyncio.gather(call, return_exceptions=True)

    [error] = asyncio.run(main())
    assert isinstance(error, TaskforceError)


def test_backoff_grows_within_bounds_and_forgets() -> None:
    backoff = Backoff()
    delays = [backoff.delay(0.0) for _ in range(10)]
    assert delays[0] == 0.0
    assert delays == sorted(delays)
    assert delays[-1] == 2.0
    assert sum(delays[:MAX_STARTS]) < 5.0
    assert backoff.delay(60.0) == 0.0
