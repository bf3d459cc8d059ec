"""A second user of this machine, really: what another uid can read, find out and take."""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

NOBODY: Final = 65534
_MOST: Final = 100_000
"""Bytes that are read of a file."""


def as_second_user(what: Callable[[], Any]) -> Any:
    """What a function gives, as JSON has it, run by another user in a process of its own.

    Skips where this one may not become somebody else.
    """
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("only root of Linux can be two users: would have shown what a second one gets")
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with os.fdopen(theirs, "w", encoding="utf-8") as file:
                json.dump(what(), file)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as file:
        told = file.read()
    os.waitpid(child, 0)
    return json.loads(told)


def all_that_can_be_read(places: Iterable[Path], since_s: float) -> list[str]:
    """The command lines and environments of all processes, and below some folders every name and each text
    that was written since a time."""
    found = list[str]()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            found += filter(None, (_text(process / "cmdline"), _text(process / "environ")))
    for place in places:
        for path in _below(place):
            found += [str(path), *([_text(path)] if _changed_s(path) >= since_s else [])]
    return found


def _below(place: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(place):
        yield Path(folder)
        yield from (Path(folder, name) for name in names)


def _changed_s(path: Path) -> float:
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0.0


def _text(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe gives nothing, at once
    except OSError:
        return ""
    try:
        return os.read(file, _MOST).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def addresses_in(texts: Iterable[str], port: int) -> set[str]:
    """Whatever stands behind this port of the machine in some texts."""
    there = re.compile(rf"(?:127\.0\.0\.1|localhost):{port}(/[^\s\0\"'<>]*)")
    return {path for text in texts for path in there.findall(text)}


def answer(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    got = connection.getresponse()
    return got.status, got.read().decode("utf-8", "replace")
