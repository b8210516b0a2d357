"""The keys of files and worktrees, by the table that all clients share."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from taskforce_sidecar import file_key, worktree_keys
from taskforce_sidecar._resources import Canonical, fold, folded

from .runs import about, in_child, refusal

TABLE = json.loads(
    (Path(__file__).resolve().parents[2] / "testdata" / "helpers.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", TABLE["fold"])
def test_names_fold(case: dict[str, str]) -> None:
    assert fold(case["text"]) == fold(case["folded"]) == case["folded"]


@pytest.mark.skipif(os.sep != "/", reason="the table's paths are those of POSIX")
@pytest.mark.parametrize("case", TABLE["folding"], ids=about)
def test_paths_fold(case: dict[str, Any]) -> None:
    def answers(folder: str, part: str, other: str) -> bool:
        assert part.lower() == other.lower() != part + other
        return folder in case["folds"]

    parts = [part for part in case["path"].split("/") if part]
    assert folded(Canonical("/", parts, case["existing"]), answers, case["usual"]) == case["key"]


def lay_out(folder: Path, tree: dict[str, Any]) -> str:
    """Makes files and links. Returns what `{root}` stands for."""
    root = file_key(folder)[len("file:") :]
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content.replace("{root}", root), encoding="utf-8")
        else:
            path.symlink_to(content["link"])
    return root


def test_every_path_to_a_file_leads_to_one_key(tmp_path: Path) -> None:
    root = lay_out(tmp_path, TABLE["files"]["tree"])
    for case in TABLE["files"]["cases"]:
        path = f"{tmp_path}/{case['path']}"
        assert file_key(path) == case["key"].replace("{root}", root), path


def test_relative_paths_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_key("some/file") == file_key(tmp_path / "some" / "file")
    assert file_key("/") == file_key("//..") == "file:/"
    assert refusal(lambda: file_key("\udcff")).code == "E_INPUT"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can become another"
)
def test_what_cannot_be_looked_at_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    def look() -> str:
        os.seteuid(65534)
        return str(refusal(lambda: file_key(tmp_path / "file")))

    assert in_child(look).startswith("E_INPUT: ")


def test_a_worktree_and_its_repository_have_keys(tmp_path: Path) -> None:
    root = lay_out(tmp_path, TABLE["worktrees"]["tree"])
    for case in TABLE["worktrees"]["cases"]:
        path = tmp_path / case["path"]
        if "error" in case:
            assert refusal(lambda path=path: worktree_keys(path)).code == case["error"]  # type: ignore[misc]
            continue
        keys = worktree_keys(path)
        assert keys["worktree"] == case["worktree"].replace("{root}", root)
        assert keys["repository"] == case["repository"].replace("{root}", root)


def test_the_keys_of_a_worktree_are_those_that_git_names(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet", "main")
    git("-C", "main", "commit", "--quiet", "--allow-empty", "--message", "empty")
    git("-C", "main", "worktree", "add", "--quiet", "../sidé")
    for top in ("main", "sidé"):
        keys = worktree_keys(tmp_path / top / "src")
        common = git("-C", top, "rev-parse", "--path-format=absolute", "--git-common-dir")
        assert keys["worktree"] == "worktree:" + file_key(tmp_path / top)[len("file:") :]
        assert keys["repository"] == "repository:" + file_key(common)[len("file:") :]
