"""Worker processes whose end can be proved.

Every worker inherits a pipe, its lifeline. The other end reads end-of-file when the last process
that holds it is gone, descendants included: that is quiescence (POSIX only).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from taskforce_sidecar.types import Outcome, Proof

SCRIPT = Path(__file__).resolve().parent / "worker.py"


class Worker:
    """A child process that holds a lifeline."""

    def __init__(self, lifeline: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[lifeline],
            text=True,
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "started\n"

    def finish(self) -> Outcome:
        """Lets the worker finish, and returns how it ended."""
        out, _ = self.process.communicate("finish\n")
        return "succeeded" if out == "done\n" else "failed"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def start() -> tuple[Worker, int]:
    """Starts a worker. Returns it with the end of its lifeline to wait for."""
    quiet, lifeline = os.pipe()
    worker = Worker(lifeline)
    os.close(lifeline)
    return worker, quiet


def proof(outcome: Outcome, quiet: int) -> Proof:
    """Waits until no process holds the lifeline, and attests it."""
    with os.fdopen(quiet, "rb") as pipe:
        pipe.read()
    return {
        "kind": "terminal",
        "outcome": outcome,
        "quiescent": True,
        "evidence": f"lifeline {quiet} reached its end",
    }
