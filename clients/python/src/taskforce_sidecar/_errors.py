"""The one class of errors."""

from __future__ import annotations

from typing import Literal, cast

from ._generated import ErrorCode, ErrorData

ClientCode = Literal[
    # No binary at any of the places that the message lists.
    "E_BINARY_NOT_FOUND",
    # The client belongs to the process that this one was forked from.
    "E_FORKED",
    # The sidecar speaks another version of the protocol.
    "E_PROTOCOL",
    # The sidecar cannot be started. Nothing was asked of it.
    "E_SIDECAR_START",
    # The sidecar died during the call; `details["outcome"]` says whether it may have taken effect.
    "E_SIDECAR_LOST",
]
"""The codes of errors that the client itself raises; they never come over the wire."""


class ErrorDetails(ErrorData, total=False):
    """What a person or program needs to act on an error."""

    outcome: Literal["unknown", "not_executed"]
    """After `E_SIDECAR_LOST`: whether the call may have taken effect."""


class TaskforceError(Exception):
    """A refusal or a fault.

    Decide by `code`; `details` holds what a person or program needs to act on it. `retryable` is
    true if the same call may succeed later without anything being changed by hand.
    """

    def __init__(
        self,
        code: ErrorCode | ClientCode,
        message: str,
        details: ErrorDetails | None = None,
    ) -> None:
        super().__init__(code, message, details)
        self.code = code
        self.message = message
        self.details = details or cast(ErrorDetails, {"code": code, "retryable": False})
        self.retryable = self.details["retryable"]

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def lost(message: str) -> TaskforceError:
    """Returns the error of a call that a sidecar took with it."""
    details = {"code": "E_SIDECAR_LOST", "retryable": False, "outcome": "unknown"}
    return TaskforceError("E_SIDECAR_LOST", message, cast(ErrorDetails, details))


def unsent(message: str) -> TaskforceError:
    """Returns the error of a call that came too late to be sent."""
    details = {"code": "E_SIDECAR_LOST", "retryable": False, "outcome": "not_executed"}
    return TaskforceError("E_SIDECAR_LOST", message, cast(ErrorDetails, details))


def start_failed(message: str) -> TaskforceError:
    """Returns the error of a sidecar that cannot be started."""
    return TaskforceError("E_SIDECAR_START", message)


def closed() -> TaskforceError:
    """Returns the error of a call to a client that was closed."""
    return TaskforceError("E_STORE_CLOSED", "the client was closed")
