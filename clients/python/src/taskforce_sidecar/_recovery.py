"""What a host that starts again has to decide.

Specified in docs/helpers.md of the repository, for all clients alike.
"""

from typing import Literal, Optional, TypedDict

from ._generated import AuditEntry, Reservation, Snapshot

Option = Literal["never_started", "bind", "mark_unknown", "terminal"]
"""What the contract allows: `never_started` and `terminal` are the two proofs of `settle`."""

# The action that brings a reservation into each state.
_ACTIONS = {"reserved": "reserve", "running": "bind", "unknown": "markUnknown"}


class Decision(TypedDict):
    """A reservation that is not settled, and what may be done about it."""

    reservation: Reservation
    """The reservation."""

    holds: list[str]
    """The resources that it keeps from others."""

    since: Optional[str]
    """When it came into its state; null if the audit does not tell."""

    reason: Optional[str]
    """Why it is unknown, as it was recorded; null in other states."""

    options: list[Option]
    """What the contract allows now, the usual first. Which proof is true, the host has to find
    out.
    """


def open_decisions(snapshot: Snapshot) -> list[Decision]:
    """Returns a decision for each reservation that is not settled, in the order of admission.

    Reads nothing but the snapshot, and changes nothing.
    """
    entries = {
        (entry["reservation_id"], entry["action"]): entry for entry in snapshot["audit"][::-1]
    }
    holds: dict[str, list[str]] = {}
    for hold in snapshot["holds"]:
        holds.setdefault(hold["reservation_id"], []).append(hold["resource_key"])
    return [
        _decision(
            reservation,
            holds.get(reservation["reservation_id"], []),
            entries.get((reservation["reservation_id"], _ACTIONS[reservation["state"]])),
        )
        for reservation in snapshot["reservations"]
        if reservation["state"] != "settled"
    ]


def _decision(reservation: Reservation, holds: list[str], entry: Optional[AuditEntry]) -> Decision:
    unknown = reservation["state"] == "unknown"
    return {
        "reservation": reservation,
        "holds": holds,
        "since": entry["created_at"] if entry else None,
        "reason": entry["details"].get("reason") if entry and unknown else None,
        "options": _options(reservation),
    }


def _options(reservation: Reservation) -> list[Option]:
    if reservation["state"] == "reserved":
        return ["never_started", "bind", "mark_unknown", "terminal"]
    if reservation["state"] == "running":
        return ["mark_unknown", "terminal"]
    # A session is recorded by the bind, after which it may have started.
    return ["never_started", "terminal"] if reservation["session_id"] is None else ["terminal"]
