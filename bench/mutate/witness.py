"""A plug-in of pytest: which test ran which lines, and how long each took; for `bench.mutate.seen`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

_took_s: dict[str, float] = {}
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lines run by a test's fixtures count as its own."""
    running = coverage.Coverage.current()
    if running is not None:
        running.switch_context(item.nodeid)
    result = yield
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up setup, call and teardown."""
    _took_s[report.nodeid] = _took_s.get(report.nodeid, 0.0) + report.duration
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    """Each process leaves what it ran; the one that only hands out tests leaves nothing."""
    if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
        told = {"took_s": _took_s, "failed": sorted(_failed)}
        path = Path(os.environ["MUTATE_TOLD"]) / f"{os.getpid()}.json"
        path.write_text(json.dumps(told), encoding="utf-8")
