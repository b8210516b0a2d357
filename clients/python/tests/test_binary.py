"""Finding the binary."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskforce_sidecar import Client, _binary
from taskforce_sidecar._binary import carried_binary, find_binary

from .runs import refusal


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TASKFORCE_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(_binary, "__file__", str(tmp_path / "package" / "_binary.py"))


def test_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = executable(tmp_path / "path" / "taskforce")
    assert find_binary() == on_path
    packaged = executable(tmp_path / "package" / "bin" / "taskforce")
    assert find_binary() == packaged
    chosen = executable(tmp_path / "chosen")
    monkeypatch.setenv("TASKFORCE_BINARY", chosen)
    assert find_binary() == chosen
    given = executable(tmp_path / "given")
    assert find_binary(Path(given)) == given


def test_not_found_lists_every_place(tmp_path: Path) -> None:
    error = refusal(lambda: Client(tmp_path))
    assert error.code == "E_BINARY_NOT_FOUND"
    packaged = tmp_path / "package" / "bin" / "taskforce"
    assert error.message.splitlines()[1:-1] == [
        "  $TASKFORCE_BINARY: not set",
        f"  inside the package: {packaged}: not there",
        f"  on PATH: {os.environ['PATH']}: not there",
    ]
    assert error.message.splitlines()[-1].startswith("install a wheel for this platform")
    packaged.mkdir(parents=True)
    assert f"{packaged}: not a file" in refusal(lambda: Client(tmp_path)).message
    packaged.rmdir()
    packaged.write_text("")
    assert refusal(carried_binary).message.endswith(f"chmod +x {packaged}")


def test_a_wrong_choice_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable(tmp_path / "path" / "taskforce")
    monkeypatch.setenv("TASKFORCE_BINARY", "/nowhere/taskforce")
    assert "$TASKFORCE_BINARY: /nowhere/taskforce" in refusal(find_binary).message
    assert "the path given: /else" in refusal(lambda: find_binary("/else")).message
