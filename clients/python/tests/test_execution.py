"""Recovery and whole executions, by the table that all clients share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError, open_decisions, with_reservation
from taskforce_sidecar.types import Proof, Reservation

from .match import difference, fill
from .runs import DONE, LEAD, RUN, about, owned_task, request, settled

TABLE = json.loads(
    (Path(__file__).resolve().parents[2] / "testdata" / "helpers.json").read_text(encoding="utf-8")
)
AnyClient = Union[Client, AsyncClient]


@pytest.mark.parametrize("case", TABLE["decisions"], ids=about)
def test_open_decisions(case: dict[str, Any]) -> None:
    assert open_decisions(case["snapshot"]) == case["decisions"]


class Work:
    """Returns a proof, or raises, as a case of the table says."""

    def __init__(self, case: dict[str, Any], is_async: bool) -> None:
        self.case, self.is_async, self.runs = case, is_async, 0

    def __call__(self, reservation: Reservation) -> Any:
        return self.later(reservation) if self.is_async else self.now(reservation)

    async def later(self, reservation: Reservation) -> Proof:
        return self.now(reservation)

    def now(self, reservation: Reservation) -> Proof:
        assert reservation["state"] == "running"
        self.runs += 1
        if "throws" in self.case:
            raise ValueError(self.case["throws"])
        proof: Proof = self.case["returns"]
        return proof


async def outcome(call: Callable[[], Any]) -> dict[str, Any]:
    """Returns the result, or what the table says of an error."""
    try:
        return {"result": await settled(call())}
    except TaskforceError as error:
        return {"error": error.details}
    except ValueError as error:
        return {"error": {"message": str(error)}}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("case", TABLE["reservations"], ids=about)
def test_with_a_reservation(
    case: dict[str, Any], kind: type[AnyClient], binary: str, tmp_path: Path
) -> None:
    async def main() -> None:
        client = kind(tmp_path, binary=binary)
        names: dict[str, str] = {}
        for step in case["before"]:
            answer = await settled(client.call(step["call"], fill(step["params"], names)))
            assert not difference(step.get("result", "$any"), answer, names)
        asked = dict(case["request"])
        wanted = {"run_id": asked.pop("runId"), "session_id": asked.pop("sessionId"), **asked}
        work = Work(case["work"], kind is AsyncClient)
        got = await outcome(lambda: with_reservation(client, wanted, work))  # type: ignore[call-overload]
        snapshot = await settled(client.governor.snapshot(wanted["run_id"]))
        last = (snapshot["reservations"] or [None])[-1]
        expected = {"error": case["error"]} if "error" in case else {"result": last}
        assert not difference(expected, got, names)
        assert work.runs == case["after"]["runs"]
        assert (last and last["state"]) == case["after"]["state"]
        assert [
            entry["action"]
            + (f": {entry['details']['reason']}" if "Unkn" in entry["action"] else "")
            for entry in snapshot["audit"]
        ] == case["after"]["audit"]
        await settled(client.close())

    asyncio.run(main())


def ask(client: Client, key: str) -> Any:
    wanted = request(owned_task(client), key)
    return {"input": wanted, "run_id": RUN, "authority": LEAD, "session_id": "worker-1"}


def test_an_interrupt_marks_the_reservation_unknown(client: Client) -> None:
    def work(_: Reservation) -> Proof:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_reservation(client, ask(client, "a"), work)
    [decision] = open_decisions(client.governor.snapshot(RUN))
    assert decision["options"] == ["terminal"]
    assert decision["reason"] == "the work failed without a text"


def test_a_reason_that_is_no_text_is_recorded_as_far_as_it_is(client: Client) -> None:
    def work(_: Reservation) -> Proof:
        raise OSError("no file \udcff")

    with pytest.raises(OSError, match="no file"):
        with_reservation(client, ask(client, "a"), work)
    assert open_decisions(client.governor.snapshot(RUN))[0]["reason"] == "no file ?"


def test_a_failure_to_mark_has_the_works_failure_as_its_cause(client: Client) -> None:
    def work(reservation: Reservation) -> Proof:
        client.close()
        raise ValueError("first")

    with pytest.raises(TaskforceError) as raised:
        with_reservation(client, ask(client, "a"), work)
    assert raised.value.code == "E_STORE_CLOSED"
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_cancelled_work_is_marked_before_the_cancellation_goes_on(
    client: Client, binary: str, tmp_path: Path
) -> None:
    wanted = ask(client, "a")

    async def main() -> None:
        async with AsyncClient(tmp_path / "root", binary=binary) as other:
            running = asyncio.Event()

            async def work(_: Reservation) -> Proof:
                running.set()
                await asyncio.Event().wait()
                return DONE

            task = asyncio.create_task(with_reservation(other, wanted, work))
            await running.wait()
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            summary = await other.governor.summary(RUN)
            assert [execution["state"] for execution in summary["executions"]] == ["unknown"]

    asyncio.run(main())


def test_a_cancellation_waits_for_the_settlement(
    client: Client, binary: str, tmp_path: Path
) -> None:
    wanted = ask(client, "a")

    async def main() -> None:
        async with AsyncClient(tmp_path / "root", binary=binary) as other:
            loop = asyncio.get_running_loop()

            async def work(_: Reservation) -> Proof:
                loop.call_soon(task.cancel)
                return DONE

            task = asyncio.create_task(with_reservation(other, wanted, work))
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await other.governor.summary(RUN))["used"]["active"] == 0

    asyncio.run(main())
    assert client.governor.snapshot(RUN)["reservations"][0]["state"] == "settled"
