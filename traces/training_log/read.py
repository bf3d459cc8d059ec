"""Reads a training log into facts: line by line, in bounded memory, and whatever odd lines it holds."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

from traces.limits import Limit
from traces.progress import Progress, silent
from traces.settings.settings import Setting, Settings
from traces.training_log import blocks, iterations, memory, own_lines, tracebacks, versions
from traces.training_log.known_lines import KnownLines
from traces.training_log.lines import LogLines
from traces.training_log.log import LoggedMemory, Message, OutOfMemory, TheoreticalMemory, TrainingLog

MESSAGES_KEPT: Final = Limit(1_000, "lines of one kind", "ours: a cause prints the same each time; bounded")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def read_log(path: Path, known: KnownLines, progress: Progress = silent) -> TrainingLog:
    """Read a log of Megatron-LM or Megatron-Bridge, plain or gzip; `known`: the lines to look for.

    No line raises: lines that are no text, or too long, are skipped and counted.

    Raises:
        LogNotFound: missing or not readable. NotALog: empty or binary. DamagedLog: its gzip is broken.
    """
    lines, reading = LogLines(path, progress), Reading(path.name, known)
    lines.give(_words(known), reading)
    return reading.log(lines)


class Reading:
    """What was read so far."""

    def __init__(self, name: str, known: KnownLines) -> None:
        self.whole = False
        self._known = known
        self._name = name
        self._iterations = iterations.IterationLines()
        self._tracebacks = tracebacks.Tracebacks()
        self._blocks = blocks.Blocks(name)
        self._versions: dict[str, str] = {}
        self._memory: list[LoggedMemory] = []
        self._theoretical: list[TheoreticalMemory] = []
        self._out_of_memory: list[OutOfMemory] = []
        self._messages: list[Message] = []
        self._count: Counter[str] = Counter()
        self._failed = False
        self._sizes: dict[str, Setting] = {}
        self._first_error: Message | None = None

    def take(self, number: int, text: str) -> None:
        """Take one line."""
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        if self._blocks.open:
            self._blocks.take(number, text)
            self.whole = self._blocks.open
        elif not (
            self._iterations.take(number, text) or self._traceback(text) or self._memory_report(number, text)
        ):
            self._said(number, text)

    def _traceback(self, text: str) -> bool:
        if "Traceback (most recent" in text:
            self._failed = True
            self._tracebacks.begin(text)
            return True
        if 'File "' not in text:
            return False
        self._tracebacks.frame(text)
        if python := versions.python_of(text):
            self._versions.setdefault("python", python)
        return True

    def _memory_report(self, number: int, text: str) -> bool:
        report = memory.logged_memory(number, text)
        if report and len(self._memory) < memory.KEPT.value:
            self._memory.append(report)
        computed = memory.theoretical_memory(number, text)
        if computed and len(self._theoretical) < memory.KEPT.value:
            self._theoretical.append(computed)
        return report is not None or computed is not None

    def _said(self, number: int, text: str) -> None:
        if self._blocks.begins(number, text):
            self.whole = True
            return
        for package, version in versions.versions_in(text).items():
            self._versions.setdefault(package, version)
        if memory.is_out_of_memory(text):
            error = memory.out_of_memory(number, text, self._tracebacks.end(text))
            if len(self._out_of_memory) < memory.KEPT.value:
                self._out_of_memory.append(error)
            self._failed = True
            self._first_error = self._first_error or Message("out-of-memory", number)
            return
        self._sizes = own_lines.sizes_in(text, f"{self._name}:{number}") | self._sizes
        known = self._known.message(number, text)
        if self._first_error is None:
            self._first_error = known if known and self._known.is_raised(known) else None
            self._first_error = self._first_error or own_lines.error_in(number, text)
        if known and self._count[known.id] < MESSAGES_KEPT.value:
            self._count[known.id] += 1
            self._messages.append(known)

    def log(self, lines: LogLines) -> TrainingLog:
        """Everything read, once all lines were taken."""
        told = self._iterations.result()
        return TrainingLog(
            name=self._name,
            line_count=lines.count,
            iterations=told,
            versions=self._versions,
            settings=self._settings(),
            memory=tuple(self._memory),
            out_of_memory=tuple(self._out_of_memory),
            messages=tuple(self._messages),
            skipped=tuple(lines.skipped),
            stopped=self._stopped(bool(told)),
            theoretical=tuple(self._theoretical),
            skipped_count=lines.skipped_count,
            planned_iterations=self._iterations.planned,
            unknown_error=error if (error := self._first_error) and error.id == "unknown-error" else None,
        )

    def _settings(self) -> Settings | None:
        """Of its blocks, over the line that names its ranks."""
        blocks = self._blocks.settings(self._versions.get("core"))
        if not self._sizes:
            return blocks
        return Settings(self._sizes).under(blocks or Settings())

    def _stopped(self, has_iterations: bool) -> bool | None:
        if not (has_iterations or self._count["training-begins"]):
            return None
        return not (self._failed or self._count["ended"] or self._iterations.last_of_run)


def _words(known: KnownLines) -> tuple[bytes, ...]:
    """What the readers look for; a word that holds another one of them adds nothing."""
    words = {
        *iterations.WORDS,
        *memory.WORDS,
        *tracebacks.WORDS,
        *versions.WORDS,
        *blocks.WORDS,
        *known.words(),
        *own_lines.WORDS,
    }
    return tuple(word for word in sorted(words) if not any(one in word for one in words - {word}))
