"""A sidecar that dies at every point of a call, a start or a close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Union

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError
from taskforce_sidecar._launch import MAX_STARTS

from .runs import kill, refusal

Fake = Callable[[str], str]
Kind = type[Union[Client, AsyncClient]]
both = pytest.mark.parametrize("kind", [Client, AsyncClient])

LOST = ("E_SIDECAR_LOST", "unknown")
# More than a pipe holds, so that writing it takes until somebody reads.
BIG = {"text": "x" * 500_000}

# Counts its starts in a file beside itself. A body may die in the first one.
HEAD = """
    import signal
    SERVER["capabilities"]["max_frame_bytes"] = 10_000_000
    path = __file__ + ".starts"
    first = not os.path.exists(path)
    open(path, "a").write("x")

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

"""


def ask(kind: Kind, binary: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Makes the calls one after the other. Returns the answers; code and outcome of errors."""

    def seen(error: TaskforceError) -> tuple[str, Any]:
        return (error.code, error.details.get("outcome"))

    async def main() -> list[Any]:
        answers: list[Any] = []
        async with AsyncClient(binary=binary) as client:
            for call in calls:
                try:
                    answers.append(await client.call(*call))
                except TaskforceError as error:
                    answers.append(seen(error))
        return answers

    if kind is AsyncClient:
        return asyncio.run(main())
    answers: list[Any] = []
    with Client(binary=binary) as client:
        for call in calls:
            try:
                answers.append(client.call(*call))
            except TaskforceError as error:
                answers.append(seen(error))
    return answers


# Where the first sidecar dies.
PLACES = {
    "before it reads the call": """
        for request in requests():
            answer(request, "served")
            if first:
                die()
        """,
    "with the call half read": """
        for request in requests():
            answer(request, "served")
            if first:
                os.read(0, 10_000)
                die()
        """,
    "with the call in its hands": """
        for request in requests():
            if first and request["method"] != "ping":
                die()
            answer(request, "served")
        """,
    "with half of the answer written": """
        for request in requests():
            if first and request["method"] != "ping":
                write(b'{"jsonrpc":"2.0","id":2,"resul')
                die()
            answer(request, "served")
        """,
    "with its output closed, but not dead": """
        for request in requests():
            if first and request["method"] != "ping":
                os.close(1)
                sys.stdin.read()
            answer(request, "served")
        """,
}


@both
@pytest.mark.parametrize("place", PLACES)
def test_a_sidecar_killed(place: str, kind: Kind, fake: Fake, monkeypatch: Any) -> None:
    monkeypatch.setattr("taskforce_sidecar._connection.EXIT_GRACE", 0.1)
    monkeypatch.setattr("taskforce_sidecar._async_connection.EXIT_GRACE", 0.1)
    binary = fake(HEAD + PLACES[place].replace("\n    ", "\n"))
    answers = ask(kind, binary, ("ping", {}), ("governor.reserve", BIG), ("task.open", BIG))
    assert answers == ["served", "served", "served"]
    Path(binary + ".starts").unlink()
    answers = ask(kind, binary, ("ping", {}), ("task.open", BIG), ("task.open", BIG))
    assert answers[0] == "served"
    # Death before the call was written can be told from death after it only if it was noticed.
    assert answers[1] in (["served", LOST] if place.startswith("before") else [LOST])
    assert answers[2] == "served"
    assert Path(binary + ".starts").read_text() == "xx"


@both
def test_an_answer_before_death_counts(kind: Kind, fake: Fake) -> None:
    binary = fake(
        HEAD
        + """
    for request in requests():
        answer(request, "served")
        die()
    """
    )
    assert ask(kind, binary, *[("task.open", {})] * 3)[0] == "served"


@both
def test_restarts_have_a_bound(kind: Kind, fake: Fake) -> None:
    binary = fake(
        HEAD
        + """
    if not first:
        die()
    for request in requests():
        die()
    """
    )
    # It took the call with it, and none of the starts after it succeeded.
    assert ask(kind, binary, ("governor.reserve", {})) == [LOST]
    assert Path(binary + ".starts").read_text() == "x" * (1 + MAX_STARTS)


DEAF = "for request in requests(): pass"


def test_a_sidecar_killed_while_it_is_closed(fake: Fake) -> None:
    client = Client(binary=fake("SERVER['capabilities']['max_frame_bytes'] = 10_000_000\n" + DEAF))
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(client.call, name, {}) for name in ("governor.reserve", "task.open")]
        while len(client._connection._session._pending) < 2:
            pass
        closing = pool.submit(client.close)
        while not client._connection._closing:
            pass
        kill(client.pid)
        closing.result()
        for call in calls:
            error = call.exception()
            assert isinstance(error, TaskforceError)
            # It may have taken effect, although the client is closed by now.
            assert (error.code, error.details.get("outcome")) == LOST
    assert refusal(client.ping).code == "E_STORE_CLOSED"


def test_a_sidecar_killed_while_it_is_closed_async(fake: Fake) -> None:
    async def main() -> list[Any]:
        client = AsyncClient(binary=fake("import signal\n" + DEAF + "\nsignal.pause()"))
        await client._connected()
        calls = [asyncio.create_task(client.call("governor.reserve", {})) for _ in range(2)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(client.close())
        while not client._started()._closing:
            await asyncio.sleep(0)
        kill(client.pid)
        await closing
        return await asyncio.gather(*calls, return_exceptions=True)

    for error in asyncio.run(main()):
        assert isinstance(error, TaskforceError)
        assert (error.code, error.details.get("outcome")) == LOST


@both
def test_a_flood_on_stderr_blocks_nothing(kind: Kind, fake: Fake) -> None:
    binary = fake(
        """
    for request in requests():
        for _ in range(640):
            os.write(2, b"x" * 100_000)
        answer(request, "served")
    """
    )
    assert ask(kind, binary, ("ping", {}), ("ping", {})) == ["served", "served"]
