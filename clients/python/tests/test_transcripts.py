"""The transcripts that all clients replay, through the typed methods of both of ours."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Union

import pytest

from taskforce_sidecar import AsyncClient, AsyncWatch, Client, TaskforceError, Watch

from .match import difference, fill
from .runs import settled

FOLDER = Path(__file__).resolve().parents[2] / "testdata" / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.json"))

AnyClient = Union[Client, AsyncClient]


def snake(name: str) -> str:
    """Names a method or parameter as this client does."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def call(client: AnyClient, method: str, params: dict[str, Any]) -> Any:
    """Makes the typed call of a method."""
    if method == "initialize":
        return client.server
    group, _, name = method.rpartition(".")
    owner = getattr(client, group) if group not in ("", "rpc") else client
    return getattr(owner, snake(name))(**{snake(key): value for key, value in params.items()})


class Replay:
    """One replay, on a store of its own."""

    def __init__(self, kind: type[AnyClient], binary: str, root: Path) -> None:
        self.kind, self.binary, self.root = kind, binary, root
        self.names: dict[str, str] = {}
        self.watches: dict[str, Watch | AsyncWatch] = {}

    async def play(self, steps: list[dict[str, Any]]) -> None:
        await self.open([])
        for number, step in enumerate(steps, 1):
            difference = await self.step(step)
            assert not difference, f"step {number}, {json.dumps(step)[:200]}: {difference}"
        await settled(self.client.close())

    async def open(self, args: list[str]) -> None:
        self.client = self.kind(self.root, binary=self.binary, args=args)
        await settled(self.client.ping())

    async def step(self, step: dict[str, Any]) -> str:
        if "call" in step:
            return await self.call(step)
        if "restart" in step:
            await settled(self.client.close())
            await self.open(step["restart"])
        elif "watch" in step:
            watch = self.watches[step["watch"]] = self.client.watch(step["watch"])
            if isinstance(watch, AsyncWatch):
                await watch.__aenter__()
        elif "changed" in step:
            change = await self.change(self.watches[step["changed"]])
            assert change == {"runId": step["changed"]}
        else:
            watch = self.watches[step["unwatch"]]
            await settled(watch.close())
            assert await self.change(watch) is None
        return ""

    async def change(self, watch: Watch | AsyncWatch) -> Any:
        """Returns the next change, or nothing at the end."""
        try:
            return next(watch) if isinstance(watch, Watch) else await watch.__anext__()
        except (StopIteration, StopAsyncIteration):
            return None

    async def call(self, step: dict[str, Any]) -> str:
        answer: dict[str, Any]
        try:
            params = fill(step["params"], self.names)
            answer = {"result": await settled(call(self.client, step["call"], params))}
        except TaskforceError as error:
            answer = {"error": error.details}
        wanted = {key: value for key, value in step.items() if key in ("result", "error")}
        return difference(wanted, answer, self.names)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
def test_transcript(kind: type[AnyClient], path: Path, binary: str, tmp_path: Path) -> None:
    steps = json.loads(path.read_text(encoding="utf-8"))["steps"]
    asyncio.run(Replay(kind, binary, tmp_path).play(steps))


def test_differences_are_seen() -> None:
    names = {"$r1": "bound"}
    for want, got in (
        (1, True),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "$more": True}, {"b": 2}),
        ([1, 2], [1]),
        ([{"a": [1]}], [{"a": [2]}]),
        ("$time", "yesterday"),
        ("$r1", "other"),
        ("$r2", 7),
        (None, {}),
    ):
        assert difference(want, got, names), (want, got)
    assert not difference({"$more": True, "a": "$r2"}, {"a": "x", "b": 1}, names)
    assert names == {"$r1": "bound", "$r2": "x"}
