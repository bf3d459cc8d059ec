"""What a person sees: commands before a terminal emulator, its screen as lines and as colours."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyte

from bench.simulate.export import write_export
from bench.simulate.recorded import View, record
from bench.simulate.run import run as simulated
from bench.simulate.scenarios import SCENARIOS
from diagnoser.cli import run

SIXTEEN: Final = frozenset(
    f"{bright}{name}"
    for bright in ("", "bright")
    for name in ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
) | {"default"}
"""The terminal's own colours as pyte calls them; `brown` is its dark yellow."""

ESCAPE_AS_TEXT: Final = re.compile(r"\\u00|\\x1b|\\033|\[\d+(;\d+)*m")
RECORDING, RESULT, CONFIGURATION, HISTORY = "run.sqlite", "run.json", "run.yaml", "history.sqlite"
COMMANDS: Final = {
    "analyze": ["analyze", RECORDING], "analyze --full": ["analyze", RECORDING, "--full"],
    "analyze -f markdown": ["analyze", RECORDING, "-f", "markdown"],
    "compare": ["compare", RESULT, RECORDING], "report": ["report", RESULT], "doctor": ["doctor", RECORDING],
    "check-config": ["check-config", CONFIGURATION], "capture": ["capture", "--for", "walls"],
    "explain": ["explain", "COM-2"], "demo": ["demo"], "demo list": ["demo", "list"],
    "history list": ["history", "list"], "--help": ["--help"], "analyze --help": ["analyze", "--help"],
    "a wrong option": ["analyze", RECORDING, "--ful"],
}  # fmt: skip
"""Each command that prints, by a name; `a_place` makes the files that they name."""


def a_place(folder: Path) -> Path:
    """The folder with a recording, its result, a configuration, and a history with that result."""
    write_export(folder / RECORDING, record(simulated(SCENARIOS["communication"]), View()), View().schema)
    assert run(["analyze", str(folder / RECORDING), "-o", str(folder / RESULT)]) == 0
    (folder / CONFIGURATION).write_text("num_moe_experts: 8\nexpert_model_parallel_size: 3\n")
    assert run(["history", "add", str(folder / RESULT), "--store", str(folder / HISTORY)]) == 0
    return folder


class Tty(io.TextIOWrapper):
    """A stream that says that it is a terminal, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)

    def isatty(self) -> bool:
        return True

    def got(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Seen:
    """Lines as they stand on the screen, and the colours of their letters."""

    lines: list[str]
    colours: frozenset[str]


def seen(sent: str, columns: int) -> Seen:
    """What a terminal of so many columns shows of what it was sent."""
    rows = sent.count("\n") + len(sent) // columns + 2  # nothing scrolls away
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(sent.replace("\r\n", "\n").replace("\n", "\r\n"))
    last = max(screen.buffer, default=-1) + 1
    lines = [line.rstrip() for line in screen.display[:last]]
    while lines and not lines[-1]:
        lines.pop()
    letters = [cell for row in range(last) for cell in screen.buffer[row].values() if cell.data.strip()]
    return Seen(lines, frozenset(cell.fg for cell in letters) | frozenset(cell.bg for cell in letters))


def reads_as_text(screen: Seen) -> None:
    """There is something, no escape stands as text, and the colours are the terminal's own."""
    assert screen.lines
    assert not [line for line in screen.lines if ESCAPE_AS_TEXT.search(line)]
    assert screen.colours <= SIXTEEN
