"""Several clients, threads and tasks in one process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taskforce_sidecar import AsyncClient, Client

from .runs import LEAD, RUN, kill, owned_task, request


def test_two_clients_in_one_process_are_apart(binary: str, tmp_path: Path) -> None:
    first, second = Client(tmp_path, binary=binary), Client(tmp_path, binary=binary)
    assert first.pid != second.pid
    kill(first.pid)
    assert second.ping() == first.ping() == {}
    # The second sidecar was started after the first one's pipe: it must not keep it open.
    before = time.monotonic()
    first.close(timeout=60.0)
    assert time.monotonic() - before < 30.0
    assert second.task.open({"title": "still here"}, RUN, LEAD)["title"] == "still here"
    second.close()


def test_a_blocking_client_beside_an_event_loop(binary: str, tmp_path: Path) -> None:
    """The blocking client serves threads of a program whose main thread runs a loop."""

    async def main() -> list[str]:
        async with AsyncClient(tmp_path, binary=binary) as client:
            with Client(tmp_path, binary=binary) as other:
                task = await asyncio.to_thread(owned_task, other)
                wanted = request(task, "a")
                asked = asyncio.to_thread(other.governor.reserve, wanted, RUN, LEAD)
                both = await asyncio.gather(client.governor.reserve(wanted, RUN, LEAD), asked)
                return [reservation["reservation_id"] for reservation in both]

    first, second = asyncio.run(main())
    assert first == second


def test_one_client_per_event_loop(binary: str, tmp_path: Path) -> None:
    async def main(title: str) -> None:
        async with AsyncClient(tmp_path, binary=binary) as client:
            await client.task.open({"title": title}, RUN, LEAD)

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda title: asyncio.run(main(title)), "abc"))
    with Client(tmp_path, binary=binary) as client:
        titles = [task["title"] for task in client.task.list({}, RUN, LEAD)["items"]]
    assert sorted(titles) == ["a", "b", "c"]


def test_a_cancelled_call_does_not_stop_the_start_that_others_wait_for(
    binary: str, tmp_path: Path
) -> None:
    async def main() -> None:
        client = AsyncClient(tmp_path, binary=binary)
        first, second = (asyncio.create_task(client.ping()) for _ in range(2))
        while client._starting is None:
            await asyncio.sleep(0)
        first.cancel()
        assert await second == {}
        with pytest.raises(asyncio.CancelledError):
            await first
        await client.close()

    asyncio.run(main())


def test_calls_cancelled_at_any_moment_leave_no_trace(binary: str, tmp_path: Path) -> None:
    """Whatever a cancelled call did, it did wholly; the client goes on, and forgets it."""

    async def main() -> None:
        async with AsyncClient(tmp_path, binary=binary) as client:
            await client.governor.extend_budget({"reason": "test", "max_active": 999}, RUN, LEAD)
            opened = await asyncio.gather(
                *(client.task.open({"title": str(i)}, RUN, LEAD) for i in range(200))
            )
            calls = [
                asyncio.create_task(
                    client.governor.reserve(request(task, task["title"]), RUN, LEAD)
                )
                for task in opened
            ]
            for number, call in enumerate(calls):
                if number % 3 == 0:
                    await asyncio.sleep(0)
                call.cancel()
            done = await asyncio.gather(*calls, return_exceptions=True)
            kept = (await client.governor.snapshot(RUN))["reservations"]
            ids = {reservation["reservation_id"] for reservation in kept}
            assert {item["reservation_id"] for item in done if isinstance(item, dict)} <= ids
            again = [
                await client.governor.reserve(request(t, t["title"]), RUN, LEAD) for t in opened
            ]
            assert ids <= {reservation["reservation_id"] for reservation in again}
            assert (await client.governor.snapshot(RUN))["active_total"] == 200
            assert not client._started()._session._pending

    asyncio.run(main())


def test_a_deadline_cancels_the_call(binary: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path, binary=binary) as client:
            for timeout in (0.0, 0.000_1, 0.001):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(client.governor.summary(RUN), timeout)
            assert await client.ping() == {}

    asyncio.run(main())
