"""Forked children: they neither use nor close what their parent has."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taskforce_sidecar import AsyncClient, Client

from .runs import LEAD, RUN, in_child, owned_task, refusal, request

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")


def test_a_child_may_not_use_the_client(client: Client) -> None:
    with client.watch(RUN) as changes:
        for call in (client.ping, lambda: client.watch(RUN), lambda: next(changes)):
            said = in_child(lambda call=call: str(refusal(call)))  # type: ignore[misc]
            assert said.startswith(f"E_FORKED: this client belongs to process {os.getpid()}")
        assert client.ping() == {}
        owned_task(client)
        client.governor.reserve(request(owned_task(client), "a"), RUN, LEAD)
        assert next(changes) == {"runId": RUN}


def test_a_child_that_closes_the_client_closes_nothing(client: Client) -> None:
    pid = client.pid

    def leave() -> str:
        with client, client.watch(RUN):
            raise AssertionError("the watch had to be refused")

    assert "E_FORKED" in in_child(leave)

    def close() -> str:
        client.close()
        return "closed"

    assert in_child(close) == "closed"
    assert client.ping() == {}
    assert client.pid == pid


def test_a_child_does_not_keep_the_sidecar_from_ending(binary: str, tmp_path: Path) -> None:
    client = Client(tmp_path, binary=binary)
    pipe, lifeline = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(lifeline)
        os.read(pipe, 1)
        os._exit(0)
    os.close(pipe)
    before = time.monotonic()
    client.close(timeout=60.0)
    assert time.monotonic() - before < 30.0
    assert client._connection._process.returncode == 0
    os.close(lifeline)
    os.waitpid(child, 0)


def test_a_child_does_not_keep_the_sidecar_from_ending_async(binary: str, tmp_path: Path) -> None:
    async def main() -> int | None:
        async with AsyncClient(tmp_path, binary=binary) as client:
            process = client._started()._process
            pipe, lifeline = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(lifeline)
                os.read(pipe, 1)
                os._exit(0)
            os.close(pipe)
            await client.close(timeout=60.0)
        os.close(lifeline)
        os.waitpid(child, 0)
        return process.returncode

    assert asyncio.run(main()) == 0


def test_a_child_may_not_use_the_asyncio_client(binary: str, tmp_path: Path) -> None:
    client = AsyncClient(tmp_path, binary=binary)
    said = in_child(lambda: str(refusal(lambda: asyncio.run(client.ping()))))
    assert said.startswith("E_FORKED")
    assert in_child(lambda: str(asyncio.run(client.close()))) == "None"


def test_forks_amid_calls_of_other_threads(client: Client) -> None:
    task = owned_task(client)

    def ask(_: int) -> str:
        return client.task.get({"task_id": task["task_id"]}, RUN, LEAD)["title"]

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(ask, range(2000))
        for _ in range(20):
            assert "E_FORKED" in in_child(lambda: str(refusal(client.ping)))
        assert list(answers) == ["work"] * 2000


def _admit_in_child(root: str, binary: str, number: int) -> str:
    with Client(root, binary=binary) as client:
        wanted = request(owned_task(client, f"worker-{number}"), f"key-{number}")
        return client.governor.reserve(wanted, RUN, LEAD)["reservation_id"]


def test_forked_workers_have_clients_of_their_own(
    client: Client, binary: str, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        work = [(str(tmp_path / "root"), binary, number) for number in range(3)]
        admitted = pool.starmap(_admit_in_child, work)
    kept = client.governor.snapshot(RUN)["reservations"]
    assert sorted(r["reservation_id"] for r in kept) == sorted(admitted)
