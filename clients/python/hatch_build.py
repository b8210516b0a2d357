"""Puts the sidecar's binary and schemas into a wheel and names the wheel's platform.

`TASKFORCE_WHEEL_BINARY` is the binary. `TASKFORCE_WHEEL_PLATFORM` is the platform part of the
wheel's tag, for example `macosx_12_0_arm64`; this machine's if absent. `pack.py` sets both for
every platform of a release.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

EXPLANATION = """
taskforce-sidecar is a client and the sidecar's binary, and this is its source, without a binary.

You see this because there is no wheel for your platform, or because your pip is too old to see it
(before 20.3), or was told not to use wheels (--no-binary). There are wheels for Linux (glibc and
musl), macOS 12 and Windows 10, each for amd64 and arm64.

On another platform, build the binary from the sidecar's repository and name it:

    CGO_ENABLED=0 go build ./cmd/taskforce
    TASKFORCE_WHEEL_BINARY=/path/to/taskforce pip install taskforce-sidecar
"""


class BinaryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before each package is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # A developer's client finds a binary by $TASKFORCE_BINARY or on PATH.
        folder = "schema" if self.target_name == "sdist" else "taskforce_sidecar/schema"
        for schema in self.schemas():
            build_data["force_include"][str(schema)] = f"{folder}/{schema.name}"
        if self.target_name == "wheel":
            self.carry(build_data)

    def schemas(self) -> list[Path]:
        """Returns the schemas: beside this file in the source package, else the repository's."""
        folder = Path(self.root, "schema")
        if not folder.is_dir():
            folder = Path(self.root).parents[1] / "schema" / "generated"
        return sorted(folder.glob("*.json"))

    def carry(self, build_data: dict[str, Any]) -> None:
        """Puts the binary into the wheel."""
        named = os.environ.get("TASKFORCE_WHEEL_BINARY")
        if not named:
            self.app.abort(EXPLANATION)
        binary = Path(str(named)).absolute()
        if not binary.is_file() or not os.access(binary, os.X_OK):
            self.app.abort(f"TASKFORCE_WHEEL_BINARY: {binary} is not an executable file")
        platform = os.environ.get("TASKFORCE_WHEEL_PLATFORM") or next(sys_tags()).platform
        name = "taskforce.exe" if platform.startswith("win") else "taskforce"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str(binary)] = f"taskforce_sidecar/bin/{name}"
