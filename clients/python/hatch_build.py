"""Makes the wheel of one platform when it carries the sidecar's binary.

Put the binary at `src/taskforce_sidecar/bin/` and name the platform in
`TASKFORCE_WHEEL_PLATFORM`, for example `manylinux2014_x86_64.musllinux_1_1_x86_64` (the binary is
static, so it runs on both), `macosx_11_0_arm64` or `win_amd64`. Without either, the wheel is for
any platform and finds its binary elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = os.environ.get("TASKFORCE_WHEEL_PLATFORM")
        carries = any(Path(self.root, "src", "taskforce_sidecar", "bin").glob("taskforce*"))
        if carries != bool(platform):
            raise RuntimeError(
                "a wheel needs both the binary and TASKFORCE_WHEEL_PLATFORM, or neither"
            )
        if platform:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
