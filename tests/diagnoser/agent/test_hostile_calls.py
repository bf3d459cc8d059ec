"""Two hundred hostile calls by a real client: each is answered within bounds, and the server goes on."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from diagnoser.agent.answers import DATA, FRAME
from tests.hostile.calls import SECRET, filled, hostile_calls
from tests.places import ROOT
from traces.limits import MESSAGE

COUNT, SEED, AT_ONCE = 200, 50, 4
LONGEST_S: Final = 30
"""Of a call, on a machine that has other work too."""
MOST_BYTES: Final = 600 << 20
"""Of the server and of what it starts."""
OURS: Final = ("(", "Whole result (JSON, docs/json.md): ", "More: moe-diag report ")


def wrong_with(tool: str, text: str, is_error: bool) -> Iterator[str]:
    """What an answer must not be."""
    first, *lines = text.split("\n")
    if len(text.encode()) >= MESSAGE.value:
        yield "too long"
    if not all(line.isprintable() for line in (first, *lines)):
        yield "not harmless"
    if SECRET in text:
        yield "read outside"
    if "a bug of moe-diag" in text:
        yield "a bug"
    if is_error and (lines or not first.startswith(DATA)):
        yield "an error of several lines"
    is_marked = first == FRAME and all(line.startswith((DATA.rstrip(), *OURS)) for line in lines)
    if not is_error and tool != "explain" and not is_marked:
        yield "data that is not marked"


def family(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            if f"\nPPid:\t{pid}\n" in status.read_text():
                yield from family(int(status.parent.name))


def server_below(pid: int) -> int:
    lines = {one: Path(f"/proc/{one}/cmdline").read_bytes() for one in family(pid)}
    (found,) = (one for one, line in lines.items() if b"diagnoser\0mcp" in line)
    return found


def most_memory(pid: int) -> int:
    """The most that any process of a family ever had."""
    lines = [line for one in family(pid) for line in Path(f"/proc/{one}/status").read_text().splitlines()]
    return max(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_two_hundred_hostile_calls_are_answered_within_bounds(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="no mcp here: would have shown what a client gets")
    from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client

    root, outside = tmp_path / "root", tmp_path / "outside"
    filled(root, outside)
    errors = (tmp_path / "errors.txt").open("w+", encoding="utf-8")
    times_s: list[float] = []
    wrong: list[tuple[str, str, str]] = []

    async def one(client: Any, tool: str, arguments: dict[str, Any]) -> None:
        began_s = time.monotonic()
        try:
            answer = await asyncio.wait_for(client.call_tool(tool, arguments), LONGEST_S)
            text, is_error = answer.content[0].text, answer.is_error
        except MCPError as error:
            text, is_error = f"{DATA}{error}", True
        except TimeoutError:
            text, is_error = "", False
        times_s.append(time.monotonic() - began_s)
        wrong.extend((what, tool, text[:300]) for what in wrong_with(tool, text, is_error))

    async def whole() -> None:
        line = ["-m", "diagnoser", "mcp", "--keep", str(tmp_path / "kept")]
        given = {"PYTHONPATH": str(ROOT), "MOE_DIAG_TRACEBACK": "1"}
        started = StdioServerParameters(command=sys.executable, args=line, cwd=root, env=given)
        async with stdio_client(started, errlog=errors) as streams, ClientSession(*streams) as client:
            await client.initialize()
            calls = list(hostile_calls(COUNT, SEED, root, outside))
            for first in range(0, COUNT, AT_ONCE):
                await asyncio.gather(*(one(client, *call) for call in calls[first : first + AT_ONCE]))
            await one(client, "analyze", {"paths": ["run.sqlite"]})
            assert most_memory(server_below(os.getpid())) < MOST_BYTES

    with errors:
        asyncio.run(whole())
        errors.seek(0)
        assert errors.read() == ""
    assert wrong == []
    assert len(times_s) == COUNT + 1
    assert max(times_s) < LONGEST_S
