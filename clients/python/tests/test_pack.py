"""The packages of a release: what is in them, and which machines they are for."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pack import TAGS

from .packages import PROJECT, pack

MODULES = sorted(path.name for path in (PROJECT / "src" / "taskforce_sidecar").glob("*.py"))


def contents(folder: Path) -> dict[str, str]:
    """Returns the digest of every file."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def test_the_wheel_contains_what_a_user_needs_and_nothing_else(wheel: Path) -> None:
    package, info = "taskforce_sidecar/", "taskforce_sidecar-0.1.0.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sorted(names) == sorted(
        [package + name for name in MODULES]
        + [package + "py.typed", package + "bin/taskforce"]
        + [package + "schema/openrpc.json", package + "schema/taskforce.schema.json"]
        + [info + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")]
        + [info + "licenses/LICENSE"]
    )


def test_the_source_contains_no_binary(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    package = "src/taskforce_sidecar/"
    assert sorted(names) == sorted(
        [package + name for name in MODULES]
        + [package + "py.typed", "hatch_build.py", "pyproject.toml"]
        + ["README.md", "LICENSE", "PKG-INFO", ".gitignore"]
        + ["schema/openrpc.json", "schema/taskforce.schema.json"]
    )


def test_the_binary_is_executable_and_whole(wheel: Path, binary: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        modes = {item.filename: item.external_attr >> 16 & 0o777 for item in archive.infolist()}
        packed = archive.read("taskforce_sidecar/bin/taskforce")
    assert packed == Path(binary).read_bytes()
    assert modes.pop("taskforce_sidecar/bin/taskforce") == 0o755
    assert set(modes.values()) == {0o644}


def test_the_record_is_right(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert rows.pop(record) == ["", ""]
        contents = {name: archive.read(name) for name in archive.namelist() if name != record}
    assert rows == {
        name: [
            "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().strip("="),
            str(len(data)),
        ]
        for name, data in contents.items()
    }


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Something to pack that is no real binary."""
    path = tmp_path_factory.mktemp("small") / "small"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="session")
def packed(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of all platforms."""
    out = tmp_path_factory.mktemp("all")
    pack(out, *(f"{name}={small}" for name in TAGS))
    return out


def test_every_platform_has_its_tags(packed: Path) -> None:
    wheels = list(packed.glob("*.whl"))
    prefix = "taskforce_sidecar-0.1.0-py3-none-"
    assert {path.name for path in wheels} == {f"{prefix}{tags}.whl" for tags in TAGS.values()}
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            [about] = [name for name in archive.namelist() if name.endswith("/WHEEL")]
            lines = archive.read(about).decode().splitlines()
            [carried] = [name for name in archive.namelist() if "/bin/" in name]
        tags = path.stem.split("-")[4].split(".")
        assert {line for line in lines if line.startswith("Tag: ")} == {
            f"Tag: py3-none-{tag}" for tag in tags
        }
        assert "Root-Is-Purelib: false" in lines
        assert carried.endswith("taskforce.exe" if "-win_" in path.name else "taskforce")


def test_the_same_input_gives_the_same_bytes(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    there = tmp_path / "elsewhere" / "clients" / "python"
    schemas = Path("schema", "generated")
    shutil.copytree(PROJECT.parents[1] / schemas, there.parents[1] / schemas)
    shutil.copytree(
        PROJECT, there, ignore=shutil.ignore_patterns(".venv", ".*_cache", "__pycache__")
    )
    for path in there.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (0, 0))
    argument = f"linux-arm64={small}"
    [first] = pack(tmp_path / "first", argument)
    [second] = pack(tmp_path / "second", argument, project=there)
    one, other = contents(first.parent), contents(second.parent)
    assert len(one) == 2
    assert one == other


def test_the_licence_is_the_projects() -> None:
    assert (PROJECT / "LICENSE").read_bytes() == (PROJECT.parents[1] / "LICENSE").read_bytes()


@pytest.mark.parametrize(
    "platform",
    [
        "manylinux2014_x86_64",
        "manylinux2014_aarch64",
        "musllinux_1_1_x86_64",
        "musllinux_1_1_aarch64",
        "macosx_12_0_x86_64",
        "macosx_14_0_arm64",
        "win_amd64",
        "win_arm64",
    ],
)
def test_pip_finds_a_wheel_for(platform: str, packed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-index", "--find-links", str(packed)]
    options = ["--platform", platform, "--python-version", "3.9", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, *options, "-d", str(tmp_path), "taskforce-sidecar"], check=False
    )
    assert done.returncode == 0
    assert len(list(tmp_path.glob("*.whl"))) == 1
