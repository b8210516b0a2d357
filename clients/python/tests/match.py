"""Compares answers with what a transcript expects; clients/testdata/README.md has the rules."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"\$r\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def fill(value: Any, names: dict[str, str]) -> Any:
    """Replaces names by what they are bound to, at any depth."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


def difference(want: Any, got: Any, names: dict[str, str], path: str = "") -> str:
    """Says where an answer differs; nothing if it does not. Binds the names that are new."""
    if want == "$any":
        return ""
    if isinstance(want, str) and isinstance(got, str):
        if want == "$time" and _TIME.fullmatch(got):
            return ""
        if _NAME.fullmatch(want):
            want = names.setdefault(want, got)
    if isinstance(want, list) and isinstance(got, list):
        return _of_lists(want, got, names, path)
    if isinstance(want, dict) and isinstance(got, dict):
        return _of_objects(want, got, names, path)
    # True equals 1 in Python, but not in JSON.
    same = want == got and isinstance(want, bool) == isinstance(got, bool)
    return "" if same else f"{path}: want {want!r}, got {got!r}"


def _of_lists(want: list[Any], got: list[Any], names: dict[str, str], path: str) -> str:
    if len(want) != len(got):
        return f"{path}: want {len(want)} items, got {len(got)}"
    pairs = enumerate(zip(want, got))
    return next(filter(None, (difference(w, g, names, f"{path}/{i}") for i, (w, g) in pairs)), "")


def _of_objects(want: dict[str, Any], got: dict[str, Any], names: dict[str, str], path: str) -> str:
    keys = sorted(want.keys() - {"$more"})
    extra = got.keys() - want.keys()
    if extra and not want.get("$more"):
        return f"{path}: is not expected: {sorted(extra)}"
    missing = want.keys() - got.keys() - {"$more"}
    if missing:
        return f"{path}: is missing: {sorted(missing)}"
    each = (difference(want[key], got[key], names, f"{path}/{key}") for key in keys)
    return next(filter(None, each), "")
