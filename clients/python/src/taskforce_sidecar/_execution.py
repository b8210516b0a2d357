"""One execution from its admission to its settlement.

Specified in docs/helpers.md of the repository, for all clients alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypedDict, TypeVar, overload

from ._async_client import AsyncClient
from ._client import Client
from ._errors import TaskforceError
from ._fence import fence
from ._generated import Authority, Proof, Reservation, ReserveInput

T = TypeVar("T")


class ExecutionRequest(TypedDict):
    """What `with_reservation` asks for."""

    input: ReserveInput
    """What is to be admitted. Its operation key is for one attempt."""

    run_id: str
    """The run."""

    authority: Authority
    """Who asks."""

    session_id: str
    """The session that will execute: the task's owner."""


@overload
def with_reservation(
    client: Client, request: ExecutionRequest, work: Callable[[Reservation], Proof]
) -> Reservation: ...


@overload
def with_reservation(
    client: AsyncClient, request: ExecutionRequest, work: Callable[[Reservation], Awaitable[Proof]]
) -> Coroutine[Any, Any, Reservation]: ...


def with_reservation(
    client: Client | AsyncClient, request: ExecutionRequest, work: Callable[[Reservation], Any]
) -> Reservation | Coroutine[Any, Any, Reservation]:
    """Reserves, binds, lets `work` run, and settles with the proof that it returns.

    Returns the settled reservation; with the asyncio client, after `await`. If `work` raises, the
    reservation is marked unknown, with the error's text as the reason, and the error goes on: what
    failed may still have effects, and only the host can find out. Nothing is released but by proof.

    Raises what `reserve`, `bind` and `settle` raise, and leaves the reservation as it is then; and
    `E_REPLAY` if the operation key is that of an earlier attempt that went further, in which case
    nothing is run: a replay is never permission to repeat effects.
    """
    if isinstance(client, AsyncClient):
        return _execute_async(client, request, work)
    run = request["run_id"], request["authority"]
    held = fence(_only_new(client.governor.reserve(request["input"], *run)))
    bound = client.governor.bind({**held, "session_id": request["session_id"]}, *run)
    try:
        proof: Proof = work(bound)
    except BaseException as error:
        try:
            client.governor.mark_unknown({**held, "reason": _reason(error)}, *run)
        except TaskforceError as failed:
            raise failed from error
        raise
    return client.governor.settle({**held, "proof": proof}, *run)


async def _execute_async(
    client: AsyncClient,
    request: ExecutionRequest,
    work: Callable[[Reservation], Awaitable[Proof]],
) -> Reservation:
    run = request["run_id"], request["authority"]
    held = fence(_only_new(await client.governor.reserve(request["input"], *run)))
    bound = await client.governor.bind({**held, "session_id": request["session_id"]}, *run)
    try:
        proof = await work(bound)
    except BaseException as error:
        try:
            await _finish(client.governor.mark_unknown({**held, "reason": _reason(error)}, *run))
        except TaskforceError as failed:
            raise failed from error
        raise
    return await _finish(client.governor.settle({**held, "proof": proof}, *run))


async def _finish(call: Coroutine[Any, Any, T]) -> T:
    """Awaits a call to its end; a cancellation waits for that."""
    task = asyncio.ensure_future(call)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    result = task.result()
    if cancelled:
        raise cancelled
    return result


def _only_new(reservation: Reservation) -> Reservation:
    if reservation["state"] == "reserved":
        return reservation
    raise TaskforceError(
        "E_REPLAY",
        f"the operation key names an attempt that is {reservation['state']}; nothing was run",
        {"code": "E_REPLAY", "retryable": False, "reservation": reservation},
    )


def _reason(error: BaseException) -> str:
    # What is no text could not be sent, and what is blank would be refused.
    text = str(error).encode(errors="replace").decode()
    return text if text.replace("\ufeff", "").strip() else "the work failed without a text"
