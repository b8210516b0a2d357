"""The asyncio client and the real sidecar."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError, fence

from .runs import DONE, LEAD, RUN, kill, owned_task, request

Scenario = Callable[[AsyncClient, Client], Awaitable[None]]


@pytest.fixture
def run(binary: str, tmp_path: Path, client: Client) -> Callable[[Scenario], None]:
    """Runs a scenario with an asyncio client of the same store as a blocking one."""

    async def opened(scenario: Scenario) -> None:
        async with AsyncClient(tmp_path / "root", binary=binary) as other:
            await scenario(other, client)

    return lambda scenario: asyncio.run(opened(scenario))


def test_a_whole_life(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: AsyncClient, other: Client) -> None:
        task = owned_task(other)
        reservation = await client.governor.reserve(request(task, "a"), RUN, LEAD)
        held = fence(reservation)
        await client.governor.bind({**held, "session_id": "worker-1"}, RUN, LEAD)
        settled = await client.governor.settle({**held, "proof": DONE}, RUN, LEAD)
        assert settled["state"] == "settled"
        assert other.governor.snapshot(RUN)["reservations"] == [settled]
        with pytest.raises(TaskforceError, match="E_GOVERNOR_CONFLICT"):
            await client.governor.bind({**held, "session_id": "worker-1"}, RUN, LEAD)

    run(scenario)


def test_many_calls_at_once(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: AsyncClient, other: Client) -> None:
        await client.governor.extend_budget({"reason": "test", "max_active": 200}, RUN, LEAD)
        titles = [client.task.open({"title": str(i)}, RUN, LEAD) for i in range(100)]
        tasks = await asyncio.gather(*titles)
        assert [task["title"] for task in tasks] == [str(i) for i in range(100)]
        admissions = [client.governor.reserve(request(t, t["title"]), RUN, LEAD) for t in tasks]
        reservations = await asyncio.gather(*admissions)
        assert [r["task_id"] for r in reservations] == [t["task_id"] for t in tasks]

    run(scenario)


def test_a_sidecar_killed_under_load_doubles_nothing(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: AsyncClient, other: Client) -> None:
        await client.governor.extend_budget({"reason": "test", "max_active": 200}, RUN, LEAD)
        tasks = [await client.task.open({"title": str(i)}, RUN, LEAD) for i in range(100)]
        admissions = [
            asyncio.ensure_future(client.governor.reserve(request(t, t["title"]), RUN, LEAD))
            for t in tasks
        ]
        await asyncio.wait(admissions, return_when=asyncio.FIRST_COMPLETED)
        killed = client.pid
        kill(killed)
        reservations = await asyncio.gather(*admissions)
        await client.ping()
        assert client.pid != killed
        snapshot = await client.governor.snapshot(RUN)
        assert snapshot["active_total"] == 100
        assert {r["reservation_id"] for r in snapshot["reservations"]} == {
            r["reservation_id"] for r in reservations
        }

    run(scenario)


def test_a_cancelled_call_leaves_the_client_usable(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: AsyncClient, other: Client) -> None:
        task = owned_task(other)
        call = asyncio.ensure_future(client.governor.reserve(request(task, "a"), RUN, LEAD))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # Whether it took effect is what the same operation key tells.
        reservation = await client.governor.reserve(request(task, "a"), RUN, LEAD)
        assert (await client.governor.snapshot(RUN))["reservations"] == [reservation]

    run(scenario)


def test_watching(run: Callable[[Scenario], None]) -> None:
    async def scenario(client: AsyncClient, other: Client) -> None:
        task = owned_task(other)
        async with client.watch(RUN) as changes:
            other.governor.reserve(request(task, "a"), RUN, LEAD)
            assert await changes.__anext__() == {"runId": RUN}
            kill(client.pid)
            assert await changes.__anext__() == {"runId": RUN}
            other.governor.reserve(request(owned_task(other), "b"), RUN, LEAD)
            async for _ in changes:
                if (await client.governor.summary(RUN))["used"]["active"] == 2:
                    break
            waiting = asyncio.ensure_future(changes.__anext__())
            await client.close()
            with pytest.raises(StopAsyncIteration):
                while True:
                    await waiting
                    waiting = asyncio.ensure_future(changes.__anext__())

    run(scenario)
