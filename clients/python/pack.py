"""Builds the Python packages of a release: a wheel for each binary, and the source.

    python pack.py OUT linux-amd64=PATH darwin-arm64=PATH ...

The same input gives the same bytes: files are sorted, modes fixed, and times those of
`SOURCE_DATE_EPOCH`, or of a fixed day.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The binary is static, so one wheel serves glibc and musl; the versions are the lowest that pip
# knows names for. macOS 12 is the oldest that Go's binaries run on.
TAGS = {
    "linux-amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin-amd64": "macosx_12_0_x86_64",
    "darwin-arm64": "macosx_12_0_arm64",
    "windows-amd64": "win_amd64",
    "windows-arm64": "win_arm64",
}


def build(target: str, out: Path, **variables: str) -> None:
    """Builds one package into the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=HERE, env={**os.environ, **variables}, check=True)


def main(out: Path, binaries: dict[str, str]) -> None:
    """Builds a wheel for each binary, and the source."""
    for platform, binary in binaries.items():
        path = str(Path(binary).absolute())
        build("wheel", out, TASKFORCE_WHEEL_BINARY=path, TASKFORCE_WHEEL_PLATFORM=TAGS[platform])
    build("sdist", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), dict(argument.split("=", 1) for argument in sys.argv[2:]))
