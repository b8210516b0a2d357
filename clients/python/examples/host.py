"""A small run with real worker processes that shows the model of admission.

    python host.py [ROOT]

A host asks before it starts a worker (reserve), says which session executes before any effect can
start (bind), and ends the reservation only when it has proof that the worker is over (settle).
Whoever dies in between releases nothing: what is uncertain keeps its slot and its holds until
somebody proves what became of it.

`workers.py` shows one way to get such proof.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workers import Worker, proof, start

from taskforce_sidecar import Client, TaskforceError, fence
from taskforce_sidecar.types import Authority, Kind, Proof, Reservation, ReserveInput, Task

RUN = "example-run"
LEAD: Authority = {"role": "lead", "sessionId": "lead-session"}


def say(who: str, what: str) -> None:
    print(f"{who:>8}  {what}", flush=True)


class Host:
    """What a host does around each worker."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client

    def say(self, what: str) -> None:
        say(self.name, what)

    def open(self, title: str, session: str) -> Task:
        """Opens a task and makes a session its owner."""
        task = self.client.task.open({"title": title}, RUN, LEAD)
        self.client.task.claim(
            {"task_id": task["task_id"], "owner": title, "owner_session": session}, RUN, LEAD
        )
        self.say(f"opened task {task['task_id']}, {title!r}, owned by {session}")
        return task

    def request(
        self, task: Task, key: str, resource: str, generation: int = 0, kind: Kind = "new"
    ) -> ReserveInput:
        return {
            "operation_key": key,
            "task_id": task["task_id"],
            "generation": generation,
            "mode": "write",
            "kind": kind,
            "resources": [resource],
        }

    def admit(self, request: ReserveInput) -> Reservation:
        reservation = self.client.governor.reserve(request, RUN, LEAD)
        self.say(
            f"admitted task {request['task_id']} ({request['kind']}, "
            f"writes {request['resources'][0]}), generation {reservation['generation']}"
        )
        return reservation

    def bind(self, reservation: Reservation, session: str) -> None:
        """The dispatch boundary: only after this may the worker be started."""
        self.client.governor.bind({**fence(reservation), "session_id": session}, RUN, LEAD)
        self.say(f"bound task {reservation['task_id']} to {session}: its worker may start")

    def mark_unknown(self, reservation: Reservation, reason: str) -> None:
        self.client.governor.mark_unknown({**fence(reservation), "reason": reason}, RUN, LEAD)
        self.say(f"task {reservation['task_id']} is unknown ({reason}): slot and holds stay")

    def settle(self, reservation: Reservation, proof: Proof) -> None:
        self.client.governor.settle({**fence(reservation), "proof": proof}, RUN, LEAD)
        self.say(f"settled task {reservation['task_id']} by proof: slot and holds are free")

    def refused(self, request: ReserveInput) -> TaskforceError:
        """Asks for what must be refused."""
        try:
            self.client.governor.reserve(request, RUN, LEAD)
        except TaskforceError as error:
            self.say(f"refused task {request['task_id']}: {error.code}")
            return error
        raise AssertionError("this admission had to be refused")


def busy_and_conflict(host: Host) -> None:
    """One worker ends well; another task has to wait for it."""
    parser, tests = host.open("parser", "session-a"), host.open("tests", "session-b")
    first = host.admit(host.request(parser, "parser-1", "src"))
    host.bind(first, "session-a")
    worker, quiet = start()

    # Busy: the second task wants to write what the first one writes.
    wanted = host.request(tests, "tests-1", "src")
    busy = host.refused(wanted).details
    assert busy["code"] == "E_RESOURCE_BUSY"
    for holder in busy["holders"]:
        host.say(f"  {holder['resource_key']} is held ({holder['state']}): wait till it is settled")
    host.settle(first, proof(worker.finish(), quiet))
    second = host.admit(wanted)

    # Conflict: an operation key names one request for ever.
    conflict = host.refused(host.request(tests, "tests-1", "docs")).details
    assert conflict["code"] == "E_GOVERNOR_CONFLICT"
    host.say(f"  {conflict['reason']}: the host's mistake; another request, another key")
    killed_worker(host, tests, second)


def killed_worker(host: Host, tests: Task, second: Reservation) -> None:
    """A worker dies. Until its end is proved, nobody else may write its resources."""
    host.bind(second, "session-b")
    worker, quiet = start()
    worker.kill()
    host.mark_unknown(second, "its worker was killed")
    host.settle(second, proof("failed", quiet))

    # Fence: whoever asks with an old generation has not seen the admission in between.
    stale = host.refused(host.request(tests, "tests-2", "src", 0, "retry")).details
    assert stale["code"] == "E_GOVERNOR_FENCE"
    current = stale["fence"]["current"]
    host.say(f"  the task is at generation {current}: see what happened since, then ask again")
    third = host.admit(host.request(tests, "tests-2", "src", current, "retry"))
    host.settle(third, {"kind": "never_started"})


def budget(host: Host) -> None:
    """New executions are counted for the whole life of a run."""
    docs, release = host.open("docs", "session-c"), host.open("release", "session-d")
    host.settle(host.admit(host.request(docs, "docs-1", "docs")), {"kind": "never_started"})
    wanted = host.request(release, "release-1", "tags")
    refused = host.refused(wanted).details
    assert refused["code"] == "E_BUDGET_EXHAUSTED"
    spent = refused["budget"]
    host.say(f"  {spent['limit']}: {spent['used']} of {spent['max']} used; a lead may extend it")
    limits = host.client.governor.extend_budget(
        {"reason": "the release needs two more", "max_created": spent["max"] + 2}, RUN, LEAD
    )
    host.say(f"  extended to {limits['max_created']} new executions")
    host.settle(host.admit(wanted), {"kind": "never_started"})


def crash(root: str, lifeline: int) -> None:
    """The second host: admits, binds, starts a worker, and dies without a word."""
    host = Host("host 2", Client(root))
    task = host.open("migration", "session-e")
    reservation = host.admit(host.request(task, "migration-1", "schema"))
    host.bind(reservation, "session-e")
    Worker(lifeline)
    host.say("crashes")
    os._exit(1)


def recover(host: Host, root: str) -> None:
    """Finds what a host that crashed left behind, and ends it by proof."""
    quiet, lifeline = os.pipe()
    second = [sys.executable, str(Path(__file__).resolve()), "--crash", root, str(lifeline)]
    subprocess.run(second, pass_fds=[lifeline], check=False)
    os.close(lifeline)
    reservations = host.client.governor.snapshot(RUN)["reservations"]
    [left] = [r for r in reservations if r["state"] != "settled"]
    host.say(f"the store still shows task {left['task_id']} as {left['state']}")
    host.mark_unknown(left, "its host crashed")
    host.settle(left, proof("failed", quiet))


def main() -> None:
    root = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="taskforce-example-")
    with Client(root) as client:
        host = Host("host 1", client)
        host.say(f"opened the store in {root}")
        busy_and_conflict(host)
        budget(host)
        recover(host, root)
        summary = client.governor.summary(RUN)
        assert summary["used"]["active"] == 0 and not summary["holds"]
        host.say(
            f"in the end nothing is active or held; {summary['used']['created']} new were used"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crash"]:
        crash(sys.argv[2], int(sys.argv[3]))
    main()
