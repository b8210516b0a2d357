"""The documentation: its code runs as it stands, and the reference can be made."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pdoc
import pytest

from taskforce_sidecar import Client

from .packages import PROJECT


def code(path: Path, root: Path) -> list[str]:
    """Returns the Python code of a page, for a store of its own."""
    text = path.read_text(encoding="utf-8").replace("/var/lib/my-host/taskforce", str(root))
    return [block.split("```")[0] for block in text.split("```python\n")[1:]]


def run(*blocks: str) -> None:
    scope: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(compile("from __future__ import annotations\n" + block, "page", "exec"), scope)


def test_the_readme_runs(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("TASKFORCE_BINARY", binary)
    run(code(PROJECT / "README.md", tmp_path / "root")[0])
    [summary] = client.governor.runs()["items"]
    [reservation] = client.governor.snapshot(summary["run_id"])["reservations"]
    assert reservation["state"] == "settled"


def test_the_page_about_python_runs(
    binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setenv("TASKFORCE_BINARY", binary)
    blocks = code(PROJECT.parents[1] / "docs" / "python.md", tmp_path / "root")
    assert len(blocks) == 4
    run(*blocks)
    states = [item["state"] for item in client.governor.snapshot("run-1")["reservations"]]
    assert states == ["settled", "settled"]


def test_the_reference_can_be_made(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc("taskforce_sidecar", output_directory=tmp_path)
    page = (tmp_path / "taskforce_sidecar.html").read_text(encoding="utf-8")
    for name in ("AsyncClient", "with_reservation", "open_decisions", "TaskforceError"):
        assert f'id="{name}"' in page
