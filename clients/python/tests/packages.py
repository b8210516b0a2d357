"""Building and installing the packages of a release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def platform() -> str:
    """Names this machine as `pack.py` does."""
    machine = "arm64" if os.uname().machine in ("arm64", "aarch64") else "amd64"
    return f"{sys.platform}-{machine}"


def pack(out: Path, *binaries: str, project: Path = PROJECT) -> list[Path]:
    """Runs `pack.py`. Returns the wheels."""
    command = [sys.executable, str(project / "pack.py"), str(out), *binaries]
    subprocess.run(command, check=True, capture_output=True)
    return sorted(out.glob("*.whl"))


def install(python: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Installs without a network."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", *arguments]
    rest = {name: value for name, value in os.environ.items() if name != "TASKFORCE_BINARY"}
    return subprocess.run(command, env={**rest, **env}, capture_output=True, text=True, check=False)
