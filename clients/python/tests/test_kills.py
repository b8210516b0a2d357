"""Sidecars killed at random moments under load: no effect is doubled, and no call hangs.

`make kills-python` does it a thousand times for each client; `TASKFORCE_KILLS` says how often here.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError, fence
from taskforce_sidecar.types import Task

from .runs import DONE, LEAD, RUN, kill, request, settled

KILLS = int(os.environ.get("TASKFORCE_KILLS", "100"))
WORKERS = 8
# A call that takes longer is taken for one that hangs, in seconds.
HANGS = 60.0

AnyClient = Union[Client, AsyncClient]


class Worker:
    """Leads one execution after the other, as a host does that loses its sidecar all the time."""

    def __init__(self, client: AnyClient, number: int) -> None:
        self.client = client
        self.session = f"worker-{number}"
        self.finished: list[str] = []
        self.unknown: list[str] = []

    async def insist(self, call: Callable[[], Any]) -> Any:
        """Asks until somebody answers, which is safe for what cannot take effect twice."""
        while True:
            try:
                return await asyncio.wait_for(settled(call()), HANGS)
            except TaskforceError as error:
                assert error.code in ("E_SIDECAR_LOST", "E_SIDECAR_START"), error

    async def once(self, call: Callable[[], Any], happened: Callable[[], Any]) -> Any:
        """Makes a call that could take effect twice: looks before it asks again."""
        while True:
            try:
                return await asyncio.wait_for(settled(call()), HANGS)
            except TaskforceError as error:
                assert error.code in ("E_SIDECAR_LOST", "E_SIDECAR_START"), error
            found = await self.insist(happened)
            if found:
                return found

    async def execute(self, title: str) -> None:
        """Leads one execution through its whole life."""
        governor, tasks = self.client.governor, self.client.task
        try:
            task: Task = await settled(tasks.open({"title": title}, RUN, LEAD))
        except TaskforceError as error:
            assert error.code in ("E_SIDECAR_LOST", "E_SIDECAR_START"), error
            if error.details.get("outcome") == "unknown":
                self.unknown.append(title)
            return
        about, owner = {"task_id": task["task_id"]}, {"owner": "w", "owner_session": self.session}

        async def has(status: str) -> bool:
            found: Task = await settled(tasks.get({"task_id": task["task_id"]}, RUN, LEAD))
            return found["status"] == status

        await self.once(
            lambda: tasks.claim({**about, **owner}, RUN, LEAD),  # type: ignore[typeddict-item]
            lambda: has("claimed"),
        )
        wanted = request(task, title, mode="write", kind="new")
        held = fence(await self.insist(lambda: governor.reserve(wanted, RUN, LEAD)))
        await self.insist(lambda: governor.bind({**held, "session_id": self.session}, RUN, LEAD))
        await self.insist(lambda: governor.settle({**held, "proof": DONE}, RUN, LEAD))
        await self.once(
            lambda: tasks.submit({"task_id": task["task_id"]}, RUN, LEAD),
            lambda: has("submitted"),
        )
        self.finished.append(title)

    async def run(self, stop: threading.Event) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            await self.execute(f"{self.session}/{number}")


def children() -> set[int]:
    """Returns the processes that this one started, even those it does not know of yet."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in lists for pid in path.read_text().split()}


def kill_at_random(spared: set[int], stop: threading.Event) -> None:
    """Kills so many sidecars, each at a random moment of its life, its start included."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    killed: set[int] = set()
    try:
        while len(killed) < KILLS:
            time.sleep(chance.uniform(0.0, 0.04))
            for pid in children() - spared - killed:
                kill(pid)
                killed.add(pid)
    finally:
        stop.set()


async def under_load(workers: list[Worker], spared: set[int]) -> None:
    """Lets the workers work until enough sidecars are killed."""
    stop = threading.Event()
    killer = asyncio.to_thread(kill_at_random, spared, stop)
    work: list[Any] = [worker.run(stop) for worker in workers]
    if isinstance(workers[0].client, Client):
        # A blocking client's workers are threads.
        work = [asyncio.to_thread(asyncio.run, running) for running in work]
    await asyncio.gather(killer, *work)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarts wait, but not long: the test is about what happens between two deaths."""
    monkeypatch.setattr("taskforce_sidecar._launch._FIRST_DELAY", 0.001)
    monkeypatch.setattr("taskforce_sidecar._launch._LONGEST_DELAY", 0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_kills_double_nothing(kind: type[AnyClient], binary: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    spared = children()
    with Client(root, binary=binary) as judge:
        limits = {"max_active": 99, "max_writers": 99, "max_created": 10**6}
        judge.call(
            "governor.extendBudget",
            {"input": {"reason": "test", **limits}, "runId": RUN, "authority": LEAD},
        )
        spared |= {judge.pid}

        async def main() -> list[Worker]:
            client = kind(root, binary=binary)
            workers = [Worker(client, number) for number in range(WORKERS)]
            await under_load(workers, spared)
            await settled(client.close())
            return workers

        workers = asyncio.run(main())
        assert_nothing_is_doubled(judge, workers)
    subprocess.run([binary, "verify", "--root", str(root)], check=True, capture_output=True)


def assert_nothing_is_doubled(judge: Client, workers: list[Worker]) -> None:
    """Compares what the store holds with what the workers were told."""
    finished = {title for worker in workers for title in worker.finished}
    unknown = {title for worker in workers for title in worker.unknown}
    print(f"{len(finished)} executions, {len(unknown)} openings with an unknown outcome")
    assert finished
    snapshot = judge.governor.snapshot(RUN)
    assert snapshot["active_total"] == 0 and not snapshot["holds"]
    keys = Counter(
        entry["details"]["operation_key"]
        for entry in snapshot["audit"]
        if entry["action"] == "reserve"
    )
    assert keys == Counter(finished)
    effects = Counter((entry["reservation_id"], entry["action"]) for entry in snapshot["audit"])
    admitted = [reservation["reservation_id"] for reservation in snapshot["reservations"]]
    assert len(admitted) == len(set(admitted)) == len(finished)
    for action in ("reserve", "bind", "settle"):
        assert {effects[(reservation, action)] for reservation in admitted} == {1}
    assert sum(effects.values()) == 3 * len(finished) + 1
    opened: list[Task] = []
    after = 0
    while True:
        page = judge.task.list({"after": after, "limit": 1000}, RUN, LEAD)
        opened += page["items"]
        if page["next"] is None:
            break
        after = page["next"]
    titles = Counter(task["title"] for task in opened)
    assert set(titles.values()) == {1}
    assert finished <= titles.keys() <= finished | unknown
