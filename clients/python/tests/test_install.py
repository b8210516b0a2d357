"""The packages of a release, where they are installed: outside of the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from .packages import PROJECT, install


def test_the_source_explains_itself(sdist: Path, tmp_path: Path) -> None:
    target = ("--no-build-isolation", "--target", str(tmp_path / "target"), str(sdist))
    done = install(sys.executable, *target)
    assert done.returncode != 0
    assert "TASKFORCE_WHEEL_BINARY=/path/to/taskforce pip install" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr.split("note:")[0]


def test_a_binary_that_cannot_be_executed_is_not_packed(sdist: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    target = ("--no-build-isolation", "--target", str(tmp_path / "target"), str(sdist))
    done = install(sys.executable, *target, TASKFORCE_WHEEL_BINARY=str(plain))
    assert f"{plain} is not an executable file" in done.stdout + done.stderr


def test_the_source_takes_a_binary(sdist: Path, binary: str, tmp_path: Path) -> None:
    target = ("--no-build-isolation", "--target", str(tmp_path / "target"), str(sdist))
    done = install(sys.executable, *target, TASKFORCE_WHEEL_BINARY=binary)
    assert done.returncode == 0, done.stderr
    packed = tmp_path / "target" / "taskforce_sidecar" / "bin" / "taskforce"
    assert packed.read_bytes() == Path(binary).read_bytes()


# PyPy speaks the oldest Python that is supported, 3.9.
OLDEST = shutil.which("pypy3")
PYTHONS = [sys.executable, OLDEST or "pypy3"]


@pytest.fixture(scope="session", params=PYTHONS, ids=["this", "oldest"])
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A clean virtual environment with the wheel, outside of the source tree."""
    if request.param != sys.executable and not OLDEST:
        assert "CI" not in os.environ, "CI has to test with the oldest Python, pypy3"
        pytest.skip("there is no pypy3")
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([request.param, "-m", "venv", "--without-pip", folder], check=True)
    done = install(str(folder / "bin" / "python"), str(wheel))
    assert done.returncode == 0, done.stderr
    return folder


def run(folder: Path, *command: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of the environment, which knows of nothing else."""
    return subprocess.run(
        [str(folder / "bin" / command[0]), *command[1:]],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/nowhere"},
        input=input,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_installed_command_is_the_carried_binary(installed: Path, binary: str) -> None:
    wanted = subprocess.run([binary, "version"], capture_output=True, text=True, check=True)
    for command in (["taskforce"], ["python", "-m", "taskforce_sidecar"]):
        done = run(installed, *command, "version")
        assert (done.returncode, done.stdout) == (0, wanted.stdout), done.stderr
    assert run(installed, "taskforce", "--no-such-option").returncode != 0
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    served = run(installed, "taskforce", "serve", "--root", "store", input=ping)
    assert served.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'


def test_the_asyncio_client_runs_where_the_wheel_is_installed(installed: Path) -> None:
    code = """
import asyncio, os
from taskforce_sidecar import AsyncClient, TaskforceError, with_reservation

LEAD = {"role": "lead", "sessionId": "lead"}

async def work(running):
    return {"kind": "terminal", "outcome": "succeeded", "quiescent": True, "evidence": "here"}

async def main():
    async with AsyncClient("async-store") as client:
        task = await client.task.open({"title": "x"}, "run", LEAD)
        owner = {"owner": "a", "owner_session": "a"}
        await client.task.claim({"task_id": task["task_id"], **owner}, "run", LEAD)
        wanted = {"operation_key": "k", "task_id": task["task_id"], "generation": 0}
        wanted.update(mode="read", kind="new", resources=[])
        request = {"input": wanted, "run_id": "run", "authority": LEAD, "session_id": "a"}
        async with client.watch("run") as changes:
            print((await with_reservation(client, request, work))["state"])
            print(await changes.__anext__())
        os.kill(client.pid, 9)
        print((await client.governor.summary("run"))["used"]["active"])

asyncio.run(main())
"""
    done = run(installed, "python", "-c", code)
    assert done.stdout.split("\n") == ["settled", "{'runId': 'run'}", "0", ""], done.stderr


def test_annotations_mean_something_at_run_time(installed: Path) -> None:
    """Libraries that read types from annotations can do so on every Python."""
    code = """
import typing, taskforce_sidecar
from taskforce_sidecar import types
for module in (types, taskforce_sidecar):
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, dict):
            print(name, typing.get_type_hints(value))
"""
    done = run(installed, "python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert "WorktreeKeys" in done.stdout and "BudgetExhaustedDetails" in done.stdout


def test_the_example_host_runs_where_the_wheel_is_installed(
    installed: Path, tmp_path: Path
) -> None:
    examples = tmp_path / "examples"
    shutil.copytree(PROJECT / "examples", examples)
    done = run(installed, "python", str(examples / "host.py"), str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("  host 1  in the end nothing is active")


def test_a_lost_permission_and_a_lost_binary_are_explained(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    venv.create(folder)
    install(str(folder / "bin" / "python"), str(wheel))
    [carried] = folder.glob("lib/*/site-packages/taskforce_sidecar/bin/taskforce")
    start = "from taskforce_sidecar import Client\nClient('store')"
    carried.chmod(0o644)
    for done in (run(folder, "taskforce"), run(folder, "python", "-c", start)):
        assert done.returncode == 1
        assert f"inside the package: {carried}: not executable" in done.stderr
        assert done.stderr.endswith(f"chmod +x {carried}\n")
    carried.unlink()
    for done in (run(folder, "taskforce"), run(folder, "python", "-c", start)):
        assert f"inside the package: {carried}: not there" in done.stderr
        assert "--only-binary :all:" in done.stderr
