"""Watching a run, with the real sidecar."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taskforce_sidecar import Client, Watch

from .runs import LEAD, RUN, kill, owned_task, request


def consume(watch: Watch) -> int:
    return sum(1 for _ in watch)


def test_changes_by_another_process_arrive(client: Client, binary: str, tmp_path: Path) -> None:
    with client.watch(RUN) as changes, Client(tmp_path / "root", binary=binary) as other:
        other.governor.reserve(request(owned_task(other), "a"), RUN, LEAD)
        assert next(changes) == {"runId": RUN}
        assert client.governor.summary(RUN)["used"]["active"] == 1


def test_a_restart_is_a_change_and_watching_goes_on(client: Client) -> None:
    with client.watch(RUN) as changes:
        kill(client.pid)
        assert next(changes) == {"runId": RUN}
        client.governor.reserve(request(owned_task(client), "a"), RUN, LEAD)
        assert next(changes) == {"runId": RUN}


def test_closing_from_another_thread_ends_the_iteration(client: Client) -> None:
    first, second = client.watch(RUN), client.watch(RUN)
    with ThreadPoolExecutor() as pool:
        consumed = pool.submit(consume, first)
        first.close()
        assert consumed.result() == 0
    # The other watch of the same run goes on.
    client.governor.reserve(request(owned_task(client), "a"), RUN, LEAD)
    assert next(second) == {"runId": RUN}
    second.close()
    with pytest.raises(StopIteration):
        next(second)


def test_closing_the_client_ends_the_iteration(client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        consumed = pool.submit(consume, client.watch(RUN))
        client.close()
        assert consumed.result() == 0


def test_a_run_that_cannot_be_watched(client: Client) -> None:
    with pytest.raises(Exception, match="E_GOVERNOR_CONFLICT"):
        client.watch("")
