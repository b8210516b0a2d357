"""Starting, and everything that can go wrong with it, by fake sidecars."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taskforce_sidecar import AsyncClient, Client, TaskforceError

from .runs import refusal

Fake = Callable[[str], str]


async def opened(binary: str, timeout: float) -> None:
    async with AsyncClient(binary=binary, start_timeout=timeout):
        pass


def both(binary: str, timeout: float = 30.0) -> TaskforceError:
    """Returns the error that either client raises at the start."""
    blocking = refusal(lambda: Client(binary=binary, start_timeout=timeout))
    other = refusal(lambda: asyncio.run(opened(binary, timeout)))
    assert (blocking.code, blocking.message) == (other.code, other.message)
    return blocking


def test_another_protocol_names_both_numbers(fake: Fake) -> None:
    binary = fake('SERVER["protocol"] = 7\nlist(requests())')
    error = both(binary)
    assert error.code == "E_PROTOCOL"
    assert "protocol 1, the sidecar 7" in error.message


def test_a_refused_protocol_names_both_numbers(fake: Fake) -> None:
    refused = {
        "code": "E_INVALID_REQUEST",
        "retryable": False,
        "reason": "protocol",
        "supported": [2, 3],
    }
    binary = fake(f"line = json.loads(sys.stdin.readline())\nrefuse(line['id'], {refused})")
    error = both(binary)
    assert error.code == "E_PROTOCOL"
    assert "protocol 1, the sidecar 2 or 3" in error.message


def test_the_sidecar_names_both_numbers_too(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKFORCE_HOME", str(tmp_path))
    monkeypatch.setattr("taskforce_sidecar._session.PROTOCOL", 7)
    error = both(binary)
    assert error.code == "E_PROTOCOL"
    assert "protocol 7, the sidecar 1;" in error.message
    assert error.details.get("supported") == [1]


def test_a_sidecar_that_ends_at_once_shows_its_last_words(fake: Fake) -> None:
    binary = fake("""
        sys.stderr.write("x" * 100_000 + "no such option")
        sys.exit(3)
    """)
    error = both(binary)
    assert error.code == "E_SIDECAR_START"
    assert "ended with status 3" in error.message
    assert error.message.endswith("no such option")
    assert len(error.message) < 5000


def test_a_sidecar_that_never_answers(fake: Fake) -> None:
    error = both(fake("sys.stdin.read()"), timeout=0.2)
    assert error.code == "E_SIDECAR_START"
    assert "0.2 seconds" in error.message


def test_what_cannot_be_executed(tmp_path: Path) -> None:
    path = tmp_path / "taskforce"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    error = both(str(path))
    assert error.code == "E_SIDECAR_START"
    assert str(path) in error.message


def test_arguments_and_environment(fake: Fake, tmp_path: Path) -> None:
    binary = fake("""
        for request in requests():
            answer(request, [sys.argv[1:], os.environ.get("SEEN")])
    """)
    arguments = ["serve", "--root", str(tmp_path), "--busy-timeout", "1s"]
    env = {"SEEN": "yes"}
    with Client(tmp_path, binary=binary, args=arguments[3:], env=env) as client:
        assert client.call("echo", {}) == [arguments, "yes"]
    with Client(binary=binary) as client:
        assert client.call("echo", {}) == [["serve"], None]


def test_answers_cut_byte_by_byte(fake: Fake) -> None:
    binary = fake("""
        for request in requests():
            text = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]},
                              ensure_ascii=False)
            for byte in text.encode() + b"\\n":
                write(bytes([byte]))
    """)
    params = {"text": "a\u2028b\u2029é😀"}

    async def main() -> Any:
        async with AsyncClient(binary=binary) as client:
            return await client.call("echo", params)

    with Client(binary=binary) as client:
        assert client.call("echo", params) == params
    assert asyncio.run(main()) == params


def test_a_frame_over_the_limit_is_refused_before_it_is_sent(fake: Fake) -> None:
    binary = fake("for request in requests(): answer(request, {})")
    with Client(binary=binary) as client:
        error = refusal(lambda: client.call("echo", {"text": "x" * 1000}))
        assert error.code == "E_INVALID_REQUEST"
        assert "accepts 1000" in error.message
        assert client.ping() == {}


def test_garbage_ends_the_sidecar_and_fails_the_call(fake: Fake) -> None:
    binary = fake("""
        for request in requests():
            write(b"panic: oh no\\n")
    """)

    async def main() -> None:
        async with AsyncClient(binary=binary) as client:
            await client.call("task.open", {})

    with Client(binary=binary) as client:
        error = refusal(lambda: client.call("task.open", {}))
    assert error.code == "E_SIDECAR_LOST"
    assert error.details.get("outcome") == "unknown"
    assert "panic: oh no" in error.message
    assert refusal(lambda: asyncio.run(main())).message == error.message


def test_the_async_client_says_that_it_was_not_started(fake: Fake) -> None:
    client = AsyncClient(binary=fake(""))
    with pytest.raises(RuntimeError, match="not started"):
        _ = client.pid
    asyncio.run(client.close())
    assert refusal(lambda: asyncio.run(client.ping())).code == "E_STORE_CLOSED"
