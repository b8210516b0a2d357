"""The blocking client and the real sidecar."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taskforce_sidecar import Client, TaskforceError, fence
from taskforce_sidecar._generated import PROTOCOL
from taskforce_sidecar.types import ClaimInput, ReserveInput, TaskInput

from .runs import DONE, LEAD, RUN, owned_task, refusal, request


def test_the_server_says_who_it_is(client: Client, tmp_path: Path) -> None:
    assert client.server["protocol"] == PROTOCOL
    assert str(tmp_path / "root") in client.server["store"]["location"]
    assert client.ping() == {}
    assert client.discover()["openrpc"]


def test_a_whole_life(client: Client) -> None:
    task = owned_task(client)
    reservation = client.governor.reserve(request(task, "a", kind="new"), RUN, LEAD)
    assert (reservation["state"], reservation["generation"]) == ("reserved", 1)
    held = fence(reservation)
    bound = client.governor.bind({**held, "session_id": "worker-1"}, RUN, LEAD)
    assert (bound["state"], bound["session_id"]) == ("running", "worker-1")
    unknown = client.governor.mark_unknown({**held, "reason": "lost sight of it"}, RUN, LEAD)
    assert unknown["state"] == "unknown"
    settled = client.governor.settle({**held, "proof": DONE}, RUN, LEAD)
    assert settled["state"] == "settled"
    limits = client.governor.extend_budget({"reason": "more", "max_active": 9}, RUN, LEAD)
    assert limits["max_active"] == 9
    snapshot = client.governor.snapshot(RUN)
    assert snapshot["reservations"] == [settled]
    actions = [entry["action"] for entry in snapshot["audit"]]
    assert actions == ["reserve", "bind", "markUnknown", "settle", "extendBudget"]


def test_reads(client: Client) -> None:
    task = owned_task(client)
    wanted = request(task, "a")
    assert client.governor.check(wanted, RUN, LEAD)["admissible"]
    reservation = client.governor.reserve(wanted, RUN, LEAD)
    assert client.governor.check(wanted, RUN, LEAD)["replay"] == reservation
    assert client.governor.summary(RUN)["used"]["active"] == 1
    page = client.governor.history(RUN, "reservations", limit=1)
    assert page["view"] == "reservations"
    assert page["items"] == [reservation]
    assert [run["run_id"] for run in client.governor.runs()["items"]] == [RUN]
    assert client.task.get({"task_id": task["task_id"]}, RUN, LEAD)["title"] == "work"
    events = client.task.history({"task_id": task["task_id"]}, RUN, LEAD)["items"]
    assert [(event["from"], event["to"]) for event in events] == [
        (None, "open"),
        ("open", "claimed"),
    ]
    assert len(client.task.list({"status": "claimed"}, RUN, LEAD)["items"]) == 1


def test_task_calls(client: Client) -> None:
    note: TaskInput = {"task_id": owned_task(client)["task_id"]}
    assert client.task.submit({**note, "note": "ready"}, RUN, LEAD)["status"] == "submitted"
    assert not client.task.reject({**note, "reason": "not yet"}, RUN, LEAD)["reopened"]
    claim: ClaimInput = {**note, "owner": "w", "owner_session": "worker-1"}
    assert not client.task.claim(claim, RUN, LEAD)["already"]
    assert client.task.claim(claim, RUN, LEAD)["already"]
    client.task.submit({"task_id": note["task_id"]}, RUN, LEAD)
    assert client.task.accept({"task_id": note["task_id"]}, RUN, LEAD)["status"] == "accepted"
    other = owned_task(client)
    assert client.task.cancel({"task_id": other["task_id"]}, RUN, LEAD)["status"] == "cancelled"


def test_a_transaction_is_all_or_nothing(client: Client) -> None:
    task = owned_task(client)
    first, second = request(task, "a"), request(task, "b", generation=1)
    error = refusal(
        lambda: client.store.transaction(
            [
                {
                    "method": "governor.reserve",
                    "params": {"input": first, "runId": RUN, "authority": LEAD},
                },
                {
                    "method": "governor.reserve",
                    "params": {"input": second, "runId": RUN, "authority": LEAD},
                },
            ]
        )
    )
    assert error.code == "E_GOVERNOR_CONFLICT"
    assert error.details.get("call") == {"index": 1, "method": "governor.reserve"}
    assert client.governor.snapshot(RUN)["reservations"] == []


def test_refusals_carry_what_is_needed_to_act(client: Client) -> None:
    task = owned_task(client)
    held = client.governor.reserve(
        {**request(task, "a", mode="write"), "resources": ["x"]}, RUN, LEAD
    )
    other = owned_task(client, "worker-2")
    busy = refusal(
        lambda: client.governor.reserve({**request(other, "b"), "resources": ["x"]}, RUN, LEAD)
    )
    assert busy.details["code"] == "E_RESOURCE_BUSY"
    [holder] = busy.details["holders"]
    assert (holder["resource_key"], holder["mode"], holder["state"]) == ("x", "write", "reserved")
    assert holder.get("execution", held)["reservation_id"] == held["reservation_id"]

    stale = refusal(lambda: client.governor.reserve(request(other, "c", generation=4), RUN, LEAD))
    assert stale.code == "E_GOVERNOR_FENCE"
    assert stale.details.get("fence") == {"fence": "admission", "expected": 4, "current": 0}

    conflict = refusal(lambda: client.governor.reserve(request(task, "a"), RUN, LEAD))
    assert conflict.code == "E_GOVERNOR_CONFLICT"
    assert conflict.details.get("reason") == "operation_key"

    invalid = refusal(lambda: client.governor.reserve({}, "", LEAD))  # type: ignore[typeddict-item]
    assert invalid.details["code"] == "E_GOVERNOR_CONFLICT"
    assert "/runId" in [v["pointer"] for v in invalid.details.get("violations", [])]

    adapter = refusal(client.governor.native_adapter)
    assert adapter.details["code"] == "E_SCHEDULER_CAPABILITY"
    assert [blocker["code"] for blocker in adapter.details["blockers"]] == [
        "H01",
        "H02",
        "H03",
        "H04",
        "H05",
        "H06",
    ]
    assert refusal(lambda: client.call("governor.nothing", {})).code == "E_METHOD_NOT_FOUND"


def test_the_budget_tells_who_uses_it(client: Client) -> None:
    reserved = [
        client.governor.reserve(request(owned_task(client), f"k{i}"), RUN, LEAD) for i in range(6)
    ]
    error = refusal(lambda: client.governor.reserve(request(owned_task(client), "k"), RUN, LEAD))
    assert error.details["code"] == "E_BUDGET_EXHAUSTED"
    budget = error.details["budget"]
    assert (budget["limit"], budget["max"]) == ("max_active", 6)
    users = [user["reservation_id"] for user in budget.get("users", [])]
    assert users == [r["reservation_id"] for r in reserved]


@pytest.mark.parametrize("key", ["a\u2028b\u2029c\u0085d", "tab\tline\nnul\x00", " é😀 ", "<&>'\""])
def test_keys_survive_exactly(client: Client, key: str) -> None:
    wanted: ReserveInput = {**request(owned_task(client), key), "resources": [key]}
    reservation = client.governor.reserve(wanted, RUN, LEAD)
    assert reservation["resources"] == [key]
    [entry] = client.governor.snapshot(RUN)["audit"]
    assert entry["details"]["operation_key"] == key


def test_what_the_sidecar_cannot_parse_does_not_hang(client: Client) -> None:
    task = owned_task(client)
    number: ReserveInput = {**request(task, "a"), "generation": 10**100}
    assert refusal(lambda: client.governor.reserve(number, RUN, LEAD)).code == "E_PARSE"
    deep: object = None
    for _ in range(100):
        deep = [deep]
    assert refusal(lambda: client.call("ping", {"deep": deep})).code == "E_PARSE"
    big: ReserveInput = {**request(task, "a"), "operation_key": "x" * 5_000_000}
    assert refusal(lambda: client.governor.reserve(big, RUN, LEAD)).code == "E_INVALID_REQUEST"
    assert client.ping() == {}


def test_many_threads(client: Client) -> None:
    client.governor.extend_budget({"reason": "test", "max_active": 200}, RUN, LEAD)
    tasks = [owned_task(client) for _ in range(40)]

    def admit(number: int) -> str:
        wanted = request(tasks[number % 40], f"key-{number % 40}")
        return client.governor.reserve(wanted, RUN, LEAD)["reservation_id"]

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(admit, range(160)))
    assert len(set(ids)) == 40
    assert ids[:40] == ids[40:80] == ids[80:120] == ids[120:]
    assert client.governor.snapshot(RUN)["active_total"] == 40


def test_closing_leaves_everything_in_the_store(binary: str, tmp_path: Path) -> None:
    with Client(tmp_path, binary=binary) as client:
        reservation = client.governor.reserve(request(owned_task(client), "a"), RUN, LEAD)
        pid = client.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with Client(tmp_path, binary=binary) as client:
        assert client.governor.snapshot(RUN)["reservations"] == [reservation]


def test_a_pinned_client(binary: str, tmp_path: Path) -> None:
    pinned = ["--run", RUN, "--role", "worker", "--session", "worker-1"]
    with Client(tmp_path, binary=binary, args=pinned) as client:
        assert client.server["pinned"] == {
            "runId": RUN,
            "role": "worker",
            "sessionId": "worker-1",
        }
        error = refusal(lambda: client.task.open({"title": "x"}, RUN, LEAD))
        assert error.details.get("reason") == "pinned"


def test_bad_options_are_reported_with_the_sidecars_own_words(binary: str, tmp_path: Path) -> None:
    error = refusal(lambda: Client(tmp_path, binary=binary, args=["--no-such-option"]))
    assert error.code == "E_SIDECAR_START"
    assert "no-such-option" in error.message


def test_a_store_that_cannot_be_opened(binary: str, tmp_path: Path) -> None:
    (tmp_path / "taskforce.db").write_bytes(b"not a database, and long enough to tell" * 100)
    error = refusal(lambda: Client(tmp_path, binary=binary).governor.summary(RUN))
    assert isinstance(error, TaskforceError)
    assert error.code in ("E_STORE_CORRUPT", "E_SIDECAR_START")


def test_the_example_runs(binary: str, tmp_path: Path) -> None:
    host = Path(__file__).parents[1] / "examples" / "host.py"
    source = str(Path(__file__).parents[1] / "src")
    env = {**os.environ, "TASKFORCE_BINARY": binary, "PYTHONPATH": source}
    done = subprocess.run(
        [sys.executable, str(host), str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for code in ("RESOURCE_BUSY", "GOVERNOR_CONFLICT", "GOVERNOR_FENCE", "BUDGET_EXHAUSTED"):
        assert f"E_{code}" in done.stdout
    assert "host 2  crashes" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("  host 1  in the end nothing is active")
