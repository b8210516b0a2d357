"""Short names for what every test asks."""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Callable
from typing import Any

from taskforce_sidecar import Client, TaskforceError
from taskforce_sidecar.types import Authority, Kind, Mode, Proof, ReserveInput, Task

RUN = "run-1"
LEAD: Authority = {"role": "lead", "sessionId": "lead"}
DONE: Proof = {"kind": "terminal", "outcome": "succeeded", "quiescent": True, "evidence": "test"}


def owned_task(client: Client, session: str = "worker-1") -> Task:
    """Opens a task and gives it an owner."""
    task = client.task.open({"title": "work"}, RUN, LEAD)
    return client.task.claim(
        {"task_id": task["task_id"], "owner": session, "owner_session": session}, RUN, LEAD
    )


def request(
    task: Task, key: str, generation: int = 0, mode: Mode = "read", kind: Kind = "reuse"
) -> ReserveInput:
    """Asks for an admission of a task that touches one resource of its own."""
    return {
        "operation_key": key,
        "task_id": task["task_id"],
        "generation": generation,
        "mode": mode,
        "kind": kind,
        "resources": [f"file-{task['task_id']}"],
    }


def refusal(call: Callable[[], object]) -> TaskforceError:
    """Returns the error that the call raises."""
    try:
        call()
    except TaskforceError as error:
        return error
    raise AssertionError("the call was not refused")


async def settled(value: Any) -> Any:
    """Returns what either client answers."""
    return await value if inspect.isawaitable(value) else value


def kill(pid: int) -> None:
    """Ends a sidecar without any warning."""
    os.kill(pid, signal.SIGKILL)


def in_child(action: Callable[[], str]) -> str:
    """Forks, and returns what the child says."""
    mouth, ear = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = action()
        except BaseException as error:
            said = repr(error)
        os.write(ear, said.encode())
        os._exit(0)
    os.close(ear)
    with os.fdopen(mouth) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def about(case: dict[str, Any]) -> str:
    """Names a case of a table."""
    return str(case["about"])
