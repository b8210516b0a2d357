"""A sidecar that commits and dies before its answer arrives: the case that resending is for.

A fake sidecar passes everything on to a real one, and dies with the first answer to one method in
its hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from taskforce_sidecar import AsyncClient, Client, fence
from taskforce_sidecar.types import Reservation, ReserveInput

from .runs import DONE, LEAD, RUN, owned_task, refusal, request, settled

Losing = Callable[[str], str]


@pytest.fixture
def losing(fake: Callable[[str], str], binary: str) -> Losing:
    """Makes a sidecar that loses the first answer to a method."""

    def make(method: str) -> str:
        return fake(f"""
            import subprocess
            real = subprocess.Popen([{binary!r}, *sys.argv[1:]], bufsize=0,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            lost = __file__ + ".lost"
            for line in sys.stdin.buffer:
                real.stdin.write(line)
                answer = real.stdout.readline()
                if {method!r} in line.decode() and not os.path.exists(lost):
                    open(lost, "w").close()
                    os._exit(9)
                write(answer)
        """)

    return make


# What a whole execution asks, in order, and each method whose answer may be lost.
LIFE = ("reserve", "bind", "markUnknown", "settle")


async def live(client: Client | AsyncClient, wanted: ReserveInput) -> Reservation:
    """Leads an execution through its whole life."""
    governor = client.governor
    held = fence(await settled(governor.reserve(wanted, RUN, LEAD)))
    await settled(governor.bind({**held, "session_id": "worker-1"}, RUN, LEAD))
    await settled(governor.mark_unknown({**held, "reason": "test"}, RUN, LEAD))
    reservation: Reservation = await settled(governor.settle({**held, "proof": DONE}, RUN, LEAD))
    return reservation


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("method", LIFE)
def test_what_was_committed_is_not_doubled(
    kind: type[Client | AsyncClient],
    method: str,
    client: Client,
    losing: Losing,
    tmp_path: Path,
) -> None:
    wanted = request(owned_task(client), "a")

    async def main() -> Reservation:
        other = kind(tmp_path / "root", binary=losing("governor." + method))
        reservation = await live(other, wanted)
        await settled(other.close())
        return reservation

    reservation = asyncio.run(main())
    assert (tmp_path / "fake.lost").exists()
    assert reservation["state"] == "settled"
    snapshot = client.governor.snapshot(RUN)
    assert snapshot["reservations"] == [reservation]
    assert [entry["action"] for entry in snapshot["audit"]] == list(LIFE)
    assert len(snapshot["retry_charges"]) == 1


def test_a_committed_open_is_lost_and_not_repeated(
    client: Client, losing: Losing, tmp_path: Path
) -> None:
    with Client(tmp_path / "root", binary=losing("task.open")) as other:
        error = refusal(lambda: other.task.open({"title": "once"}, RUN, LEAD))
        assert error.code == "E_SIDECAR_LOST"
        assert error.details.get("outcome") == "unknown"
        # The outcome is unknown to the caller; a read tells.
        tasks = other.task.list({}, RUN, LEAD)["items"]
    assert [task["title"] for task in tasks] == ["once"]
