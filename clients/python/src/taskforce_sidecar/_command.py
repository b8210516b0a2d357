"""The command `taskforce`: the binary that this package carries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from ._binary import carried_binary
from ._errors import TaskforceError


def main() -> None:
    """Becomes the carried binary, with the arguments of this process.

    Never one that is found elsewhere: that could be this very command.
    """
    try:
        command = [carried_binary(), *sys.argv[1:]]
    except TaskforceError as error:
        sys.exit(f"taskforce: {error.message}")
    if sys.platform == "win32":
        # A process cannot become another one there. Ctrl-C reaches both, and the binary decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(subprocess.run(command, check=False).returncode)
    os.execv(command[0], command)
