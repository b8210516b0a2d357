"""Fixtures: the real binary, a fresh store, and fake sidecars."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taskforce_sidecar import Client

from .packages import pack, platform

HERE = Path(__file__).parent
BINARY = os.environ.get("TASKFORCE_BINARY") or str(HERE.parents[2] / "bin" / "taskforce")


@pytest.fixture(scope="session")
def binary() -> str:
    """The real binary."""
    assert os.access(BINARY, os.X_OK), f"build {BINARY} first, or set TASKFORCE_BINARY"
    return BINARY


@pytest.fixture
def client(binary: str, tmp_path: Path) -> Iterator[Client]:
    """A client of a fresh store."""
    with Client(tmp_path / "root", binary=binary) as client:
        yield client


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], str]:
    """Makes an executable from the body of a script that may use `fake_sidecar`."""

    def make(body: str) -> str:
        path = tmp_path / "fake"
        head = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n"
        path.write_text(head + "from fake_sidecar import *\n" + textwrap.dedent(body))
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture(scope="session")
def wheel(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this machine, beside the source package."""
    out = tmp_path_factory.mktemp("dist")
    return pack(out, f"{platform()}={binary}")[0]


@pytest.fixture(scope="session")
def sdist(wheel: Path) -> Path:
    """The source package."""
    return next(wheel.parent.glob("*.tar.gz"))
