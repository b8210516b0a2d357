"""What type checkers must understand of a host's code. It is checked, and never run.

A line with the comment `# wrong` must be an error to every checker, and no other line may be one.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import assert_type

from taskforce_sidecar import AsyncClient, Client, TaskforceError, fence
from taskforce_sidecar.types import (
    AuditEntry,
    Authority,
    BudgetDetail,
    FenceDetail,
    Holder,
    Kind,
    Limits,
    Mode,
    Outcome,
    Proof,
    Reason,
    Reservation,
    ReservationsPage,
    ReserveInput,
    RetryCharge,
    State,
    TaskStatus,
)

LEAD: Authority = {"role": "lead", "sessionId": "host"}


def literals(client: Client, reservation: Reservation) -> None:
    assert_type(reservation["mode"], Literal["read", "write"])
    assert_type(reservation["kind"], Literal["new", "reuse", "retry"])
    assert_type(reservation["state"], Literal["reserved", "running", "unknown", "settled"])
    mode: Mode = "execute"  # wrong
    kind: Kind = "old"  # wrong
    state: State = "done"  # wrong
    status: TaskStatus = "closed"  # wrong
    outcome: Outcome = "unknown"  # wrong
    boss: Authority = {"role": "boss", "sessionId": "host"}  # wrong
    if reservation["state"] == "finished":  # wrong
        print(mode, kind, state, status, outcome, boss)


def parameters(client: Client, wanted: ReserveInput) -> None:
    assert_type(client.governor.reserve(wanted, "run", LEAD), Reservation)
    client.governor.reserve(wanted, LEAD, "run")  # wrong
    client.governor.reserve({"operation_key": "a"}, "run", LEAD)  # wrong
    held = fence(client.governor.reserve(wanted, "run", LEAD))
    client.governor.bind({**held, "session_id": "worker"}, "run", LEAD)
    client.governor.bind({**held}, "run", LEAD)  # wrong
    client.task.open({"title": "a", "colour": "red"}, "run", LEAD)  # wrong
    client.governor.extend_budget({"max_active": 9}, "run", LEAD)  # wrong
    limits = client.governor.extend_budget({"reason": "more", "max_active": 9}, "run", LEAD)
    assert_type(limits, Limits)


def proofs() -> Proof:
    proof: Proof = {"kind": "never_started"}
    proof = {"kind": "terminal", "outcome": "failed", "quiescent": True, "evidence": "log"}
    proof = {"kind": "never_started", "outcome": "failed"}  # wrong
    proof = {"kind": "terminal", "outcome": "failed", "quiescent": True}  # wrong
    proof = {"kind": "terminal", "outcome": "gone", "quiescent": True, "evidence": ""}  # wrong
    proof = {"kind": "terminal", "outcome": "failed", "quiescent": False, "evidence": ""}  # wrong
    return proof


def proof_of_either_kind(proof: Proof) -> str:
    if proof["kind"] == "terminal":
        assert_type(proof["outcome"], Literal["succeeded", "failed", "cancelled"])
        return proof["evidence"]
    return proof["evidence"]  # wrong


def pages(client: Client) -> None:
    page = client.governor.history("run", "reservations")
    assert_type(page, ReservationsPage)
    assert_type(client.governor.history("run", "audit")["items"], list[AuditEntry])
    assert_type(client.governor.history("run", "retry_charges")["items"], list[RetryCharge])
    client.governor.history("run", "tasks")  # wrong


def page_of_any_kind(client: Client, reservations: bool) -> None:
    page = client.governor.history("run", "reservations" if reservations else "audit")
    if page["view"] == "audit":
        assert_type(page["items"], list[AuditEntry])


def refusals(error: TaskforceError) -> None:
    details = error.details
    assert_type(details["retryable"], bool)
    if details["code"] == "E_BUDGET_EXHAUSTED":
        assert_type(details["budget"], BudgetDetail)
        print(details["holders"])  # wrong
    elif details["code"] == "E_RESOURCE_BUSY":
        assert_type(details["holders"], list[Holder])
    elif details["code"] == "E_GOVERNOR_FENCE":
        assert_type(details["fence"], FenceDetail)
    elif details["code"] == "E_GOVERNOR_CONFLICT":
        assert_type(details["reason"], Reason)
    elif details["code"] == "E_SIDECAR_LOST":
        assert_type(details["outcome"], Literal["unknown", "not_executed"])
    elif details["code"] == "E_PROTOCOL":
        assert_type(details["supported"], list[int])
    elif details["code"] == "E_NO_SUCH_CODE":  # wrong
        pass
    if error.details["code"] == "E_STATUS":
        assert_type(error.details["status"], TaskStatus)
    if error.code == "E_NO_SUCH_CODE":  # wrong
        pass


async def asynchronous(client: AsyncClient, wanted: ReserveInput) -> None:
    assert_type(await client.governor.reserve(wanted, "run", LEAD), Reservation)
    page = await client.governor.history("run", "audit")
    assert_type(page["items"], list[AuditEntry])
    async with client.watch("run") as changes:
        async for change in changes:
            assert_type(change["runId"], str)
    print(client.governor.reserve(wanted, "run", LEAD)["state"])  # wrong


def transactions(client: Client, wanted: ReserveInput) -> None:
    client.store.transaction(
        [
            {
                "method": "governor.reserve",
                "params": {"input": wanted, "runId": "run", "authority": LEAD},
            }
        ]
    )
    client.store.transaction([{"method": "governor.watch", "params": {"runId": "run"}}])  # wrong
