"""The one class of errors."""

from __future__ import annotations

from typing import Literal, TypedDict, Union, cast

from ._generated import ErrorCode, RefusalDetails, Reservation

LocalCode = Literal[
    # No binary at any of the places that the message lists.
    "E_BINARY_NOT_FOUND",
    # The client belongs to the process that this one was forked from.
    "E_FORKED",
    # The sidecar cannot be started. Nothing was asked of it.
    "E_SIDECAR_START",
]
ClientCode = Union[
    LocalCode,
    # The sidecar speaks another version of the protocol.
    Literal["E_PROTOCOL"],
    # The operation key names an earlier attempt; `details["reservation"]` is what became of it.
    Literal["E_REPLAY"],
    # The sidecar died during the call; `details["outcome"]` says whether it may have taken effect.
    Literal["E_SIDECAR_LOST"],
]
"""The codes of errors that the client itself raises; they never come over the wire."""


class LocalDetails(TypedDict):
    """The details of an error of the client that needs no explanation."""

    code: LocalCode
    """The stable error code."""

    retryable: bool
    """Always false."""


class ProtocolDetails(TypedDict):
    """The sidecar speaks another version of the protocol."""

    code: Literal["E_PROTOCOL"]
    """Always `E_PROTOCOL`."""

    retryable: bool
    """Always false."""

    supported: list[int]
    """The versions that the sidecar speaks."""


class ReplayDetails(TypedDict):
    """The operation key names an earlier attempt, and nothing was run."""

    code: Literal["E_REPLAY"]
    """Always `E_REPLAY`."""

    retryable: bool
    """Always false."""

    reservation: Reservation
    """The reservation as it stands."""


class SidecarLostDetails(TypedDict):
    """The sidecar died during the call, and the call may not be repeated."""

    code: Literal["E_SIDECAR_LOST"]
    """Always `E_SIDECAR_LOST`."""

    retryable: bool
    """Always false."""

    outcome: Literal["unknown", "not_executed"]
    """Whether the call may have taken effect."""


ErrorDetails = Union[
    RefusalDetails, LocalDetails, ProtocolDetails, ReplayDetails, SidecarLostDetails
]
"""What a person or program needs to act on an error; comparing its `code` tells what it has:

    details = error.details
    if details["code"] == "E_RESOURCE_BUSY":
        print(details["holders"])
"""


class TaskforceError(Exception):
    """A refusal or a fault.

    Decide by `code`, or by the same in `details`, which holds what a person or program needs to act
    on it. `retryable` is true if the same call may succeed later without anything being changed by
    hand.
    """

    def __init__(
        self,
        code: ErrorCode | ClientCode,
        message: str,
        details: ErrorDetails | None = None,
    ) -> None:
        super().__init__(code, message, details)
        self.code: ErrorCode | ClientCode = code
        self.message: str = message
        self.details: ErrorDetails = details or cast(
            ErrorDetails, {"code": code, "retryable": False}
        )
        self.retryable: bool = self.details["retryable"]

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def lost(message: str) -> TaskforceError:
    """Returns the error of a call that a sidecar took with it."""
    return TaskforceError(
        "E_SIDECAR_LOST",
        message,
        {"code": "E_SIDECAR_LOST", "retryable": False, "outcome": "unknown"},
    )


def unsent(message: str) -> TaskforceError:
    """Returns the error of a call that came too late to be sent."""
    return TaskforceError(
        "E_SIDECAR_LOST",
        message,
        {"code": "E_SIDECAR_LOST", "retryable": False, "outcome": "not_executed"},
    )


def start_failed(message: str) -> TaskforceError:
    """Returns the error of a sidecar that cannot be started."""
    return TaskforceError("E_SIDECAR_START", message)


def closed() -> TaskforceError:
    """Returns the error of a call to a client that was closed."""
    return TaskforceError("E_STORE_CLOSED", "the client was closed")
