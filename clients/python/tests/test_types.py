"""What type checkers make of a host's code: `typed/usage.py` is checked with mypy and pyright."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
USAGE = PROJECT / "tests" / "typed" / "usage.py"


def wrong_lines() -> set[int]:
    """Returns the lines that must be errors."""
    lines = USAGE.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("  # wrong")}


def check(*command: str, status: int = 1) -> str:
    """Runs a type checker, which finds the package by its source."""
    env = {**os.environ, "MYPYPATH": str(PROJECT / "src"), "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_mypy() -> None:
    out = check("mypy", "--strict", "--strict-equality", "--output", "json", str(USAGE))
    found = [json.loads(line) for line in out.splitlines()]
    errors = {item["line"]: item["message"] for item in found if item["severity"] == "error"}
    assert errors.keys() == wrong_lines(), errors


def test_every_public_name_has_a_type() -> None:
    out = check("pyright", "--verifytypes", "taskforce_sidecar", "--ignoreexternal", status=0)
    assert "Type completeness score: 100%" in out


def test_pyright() -> None:
    out = check("pyright", "--outputjson", str(USAGE))
    found = json.loads(out)["generalDiagnostics"]
    errors = {item["range"]["start"]["line"] + 1: item["message"] for item in found}
    assert errors.keys() == wrong_lines(), errors
