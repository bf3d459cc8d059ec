"""A call of a tool really ends, whatever its process is doing, and the server goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import processes
from tests.places import ROOT
from tests.recordings.nsys import desk

anyio: Any = pytest.importorskip("anyio", reason="no mcp here: would have shown that calls end")

from diagnoser.agent import calls as module  # noqa: E402 - needs anyio
from diagnoser.agent.answers import Answer, Tools  # noqa: E402
from diagnoser.agent.bounds import bounds_of  # noqa: E402
from diagnoser.agent.calls import Calls  # noqa: E402
from traces.limits import Limit  # noqa: E402


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Answer]]:
    """What calls are answered whose processes do something else; then one that is right."""
    monkeypatch.setattr(module, "PATIENCE", Limit(0.5, "seconds", "a test"))

    def ask(work: Callable[..., None], patience_s: float = 60) -> list[Answer]:
        bounds, answers = bounds_of(tmp_path), list[Answer]()
        calls = Calls(Tools(tmp_path / "kept"), replace(bounds, time_s=1))

        async def talk() -> None:
            with monkeypatch.context() as patched, anyio.move_on_after(patience_s):
                patched.setattr(module, "_work", work)
                answers.append(await calls.answer("explain", {"word": "COM-2"}))
            calls._bounds = bounds
            answers.append(await calls.answer("explain", {"word": "COM-2"}))

        anyio.run(talk)
        return answers

    return ask


def processes_of(session: int) -> list[int]:
    """Of a session, those that run."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(session) and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.mark.parametrize("work", [processes.stuck_in_a_library, processes.deaf])
def test_a_process_that_takes_no_signal_is_killed(
    work: Callable[..., None], asked: Callable[..., list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, end = list[int](), module._end

    def noted(process: Any) -> None:
        ended.append(process.pid)
        end(process)

    monkeypatch.setattr(module, "_end", noted)
    began_s = time.monotonic()
    late, right = asked(work)
    assert late == Answer(late.text, is_error=True)
    assert late.text.startswith("| not finished within 1 s")
    assert not right.is_error
    assert time.monotonic() - began_s < 30
    assert processes_of(ended[0]) == []


def test_a_process_that_was_killed_is_said_to_be(asked: Callable[..., list[Answer]]) -> None:
    killed, right = asked(processes.killed)
    assert killed.text.startswith("| the process of this call was ended from outside")
    assert not right.is_error


@pytest.mark.skipif(sys.platform != "linux", reason="no other system bounds memory")
def test_a_call_beyond_its_memory_ends_and_the_next_is_answered(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(f'{{"traceEvents": [], "x": [{"0.5," * 9_000_000}0.5]}}')
    calls = Calls(Tools(tmp_path / "kept"), replace(bounds_of(tmp_path), memory_bytes=300 << 20))

    async def talk() -> list[Answer]:
        large = await calls.answer("analyze", {"paths": ["large.json"]})
        return [large, await calls.answer("explain", {"word": "COM-2"})]

    large, after = anyio.run(talk)
    assert "large.json needs more memory than the 300 MB allowed" in large.text
    assert not after.is_error


def test_more_than_an_answer_is_none(asked: Callable[..., list[Answer]]) -> None:
    much, right = asked(processes.too_talkative)
    assert much.is_error
    assert not right.is_error


def test_a_client_that_waits_no_longer_has_the_call_ended(asked: Callable[..., list[Answer]]) -> None:
    began_s = time.monotonic()
    (right,) = asked(processes.stuck_in_a_library, 0.5)
    assert not right.is_error
    assert time.monotonic() - began_s < 30


def test_a_client_that_goes_away_leaves_nothing_that_works(tmp_path: Path) -> None:
    here = desk(tmp_path, export='while :; do echo beat >>"$here/beats"; sleep 0.02; done')
    beats = here.nsys.folder / "beats"
    line = [sys.executable, "-m", "diagnoser", "mcp", "--keep", str(tmp_path / "kept")]
    given = {**os.environ, "PYTHONPATH": str(ROOT), "NSYS": here.nsys.path, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(
        line, cwd=tmp_path, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        call = {"name": "analyze", "arguments": {"paths": ["runs/run.nsys-rep"]}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        end_s = time.monotonic() + 30
        while not beats.exists() and time.monotonic() < end_s:
            time.sleep(0.05)
        server.stdin.close()
        assert server.wait(20) == 0
    heard = beats.stat().st_size
    time.sleep(0.3)
    assert beats.stat().st_size == heard
