"""The fence of a reservation."""

from __future__ import annotations

from typing import TypedDict

from ._generated import Reservation


class ReservationFence(TypedDict):
    """The two members that every call about a reservation carries."""

    reservation_id: str
    generation: int


def fence(reservation: Reservation) -> ReservationFence:
    """Returns what every call about the reservation carries: `{**fence(r), "reason": ...}`."""
    return {
        "reservation_id": reservation["reservation_id"],
        "generation": reservation["generation"],
    }
