"""Real sidecars that die or are told to end under a client's hands."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

from taskforce_sidecar import Client, TaskforceError

from .runs import LEAD, RUN, kill, owned_task, request


def test_a_sidecar_killed_under_load_doubles_nothing(client: Client) -> None:
    client.governor.extend_budget({"reason": "test", "max_active": 500}, RUN, LEAD)
    tasks = [owned_task(client) for _ in range(100)]

    def admit(number: int) -> str:
        wanted = request(tasks[number], f"key-{number}")
        return client.governor.reserve(wanted, RUN, LEAD)["reservation_id"]

    with ThreadPoolExecutor(8) as pool:
        admitted = pool.map(admit, range(100))
        first = next(admitted)
        killed = client.pid
        kill(killed)
        ids = [first, *admitted]
    assert client.pid != killed
    snapshot = client.governor.snapshot(RUN)
    assert snapshot["active_total"] == len(set(ids)) == 100
    assert sorted(r["reservation_id"] for r in snapshot["reservations"]) == sorted(ids)
    assert len([e for e in snapshot["audit"] if e["action"] == "reserve"]) == 100


def test_a_sidecar_that_is_told_to_end_loses_no_call(client: Client) -> None:
    def open_one(number: int) -> int:
        if number == 20:
            os.kill(client.pid, signal.SIGTERM)
        try:
            return client.task.open({"title": str(number)}, RUN, LEAD)["task_id"]
        except TaskforceError as error:
            # Written to its pipe after it had stopped reading.
            assert error.details.get("outcome") == "unknown"
            return 0

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(open_one, range(100)))
    opened = [task["task_id"] for task in client.task.list({"limit": 1000}, RUN, LEAD)["items"]]
    assert sorted(id for id in ids if id) == opened
    assert ids.count(0) <= 4


def test_an_idle_sidecar_that_died_is_started_by_any_call(client: Client) -> None:
    kill(client.pid)
    client._connection._reader.join()
    task = client.task.open({"title": "after"}, RUN, LEAD)
    assert client.task.get({"task_id": task["task_id"]}, RUN, LEAD)["title"] == "after"
