"""python -m bench.mutate.worker: runs tests in a fork that has the libraries but not the product.

A line of JSON in, {"tests": [...], "limit_s": n}; a line out, {"outcome": ..., "by": a test or ""}. The
outcome is passed, failed, or endless where the limit ended it. It runs the copy that it was started in.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

_LIBRARIES = (
    *("numpy", "pandas", "numba", "yaml", "jinja2", "rich", "rich.console", "hypothesis", "jsonschema"),
    *("sqlite3", "matplotlib", "unittest.mock", "hypothesis.strategies", "sqlite_utils"),
)
_POLL_S = 0.02


class _First:
    """Remembers the first test that failed."""

    def __init__(self) -> None:
        self.by = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.by = self.by or (report.nodeid if report.failed else "")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.by = self.by or (report.nodeid if report.failed else "")


def _run(tests: list[str], answer: int) -> None:
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    first = _First()
    ignored = "ignore::pytest.PytestAssertRewriteWarning"  # a plug-in of one of the libraries
    words = ["-x", "-q", "-p", "no:cacheprovider", "-W", ignored, *tests]
    code = int(pytest.main(words, plugins=[first]))
    os.write(answer, json.dumps({"code": code, "by": first.by}).encode())
    os._exit(0)


def _judged(tests: list[str], limit_s: float) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _run(tests, write)
    os.close(write)
    until = time.monotonic() + limit_s
    ended = 0
    while not ended and time.monotonic() < until:
        ended, _ = os.waitpid(child, os.WNOHANG)
        time.sleep(_POLL_S)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        os.close(read)
        return {"outcome": "endless", "by": ""}
    with os.fdopen(read) as said:
        text = said.read()
    if not text:
        return {"outcome": "failed", "by": "the interpreter itself"}
    told = json.loads(text)
    return {"outcome": "passed" if told["code"] in (0, 5) else "failed", "by": told["by"]}


def main() -> None:
    """Answer until the input ends."""
    for name in _LIBRARIES:
        import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_judged(asked["tests"], asked["limit_s"])), flush=True)


if __name__ == "__main__":
    main()
