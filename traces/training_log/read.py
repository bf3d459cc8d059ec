"""Reads a training log into facts: line by line, in bounded memory, and whatever odd lines it
holds.

Reading every line of a long log into Python takes longer than searching its bytes for a few words,
so words are searched first, a chunk at a time.
"""

import gzip
import os
import zlib
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from traces.errors import InputError
from traces.files.beneath import opened
from traces.files.plain_file import no_file
from traces.files.unpacked import Unpacked
from traces.limits import Limit
from traces.names.file_names import told_path
from traces.patterns import compiled
from traces.progress import Progress, silent
from traces.sections.section import copied
from traces.settings.settings import Setting, Settings
from traces.training_log import blocks, iterations, memory, own_lines, step_lines
from traces.training_log.known_lines import KnownLines
from traces.training_log.log import Message, TrainingLog, holds_one

LONGEST_LINE: Final = Limit(
    65_536, "bytes", "ours: far above any line of a trainer; progress bars go above it"
)
_CHUNK_BYTES: Final = 1 << 20


class LogNotFound(InputError):
    """The path names no file that can be read."""


class NotALog(InputError):
    """The file is empty or no text."""


class DamagedLog(InputError):
    """The compressed log is truncated or damaged."""


MESSAGES_KEPT: Final = Limit(
    1_000, "lines of one kind", "ours: enough to look them up; a cause prints the same each time"
)
_KEPT: Final = {
    **dict.fromkeys(("memory", "theoretical", "out_of_memory"), iterations.KEPT),
    **dict.fromkeys(("skipped", "messages"), MESSAGES_KEPT),
}
"""How many are kept of a field of `TrainingLog`; of messages those of each kind."""
_NOT_A_NUMBER: Final = ("norm: nan", "norm: inf")
"""Of an iteration line, which no known line is beside these."""
_COLOUR: Final = compiled(r"\x1b\[[0-9;]*m")


def read_log(path: Path, known: KnownLines, progress: Progress = silent) -> TrainingLog:
    """Read a log of a trainer that we know, plain or gzip; `known`: lines to look for.

    No line raises: lines that are no text, or too long, are skipped and counted.

    Raises:
        LogNotFound: missing or not readable. NotALog: empty or binary. DamagedLog: its gzip is
        broken.
    """
    words, reading = _words(known), _Reading(told_path(path), known)
    for chunk in _whole_lines(_blocks(path, progress)):
        reading.take_chunk(chunk, words)
    return reading.log()


def _blocks(path: Path, progress: Progress) -> Iterator[bytes]:
    name = path.name
    if what := no_file(path):
        raise LogNotFound(f"{name} is {what}: give --log the text that the training run printed")
    try:
        with opened(path) as file:
            size = max(os.fstat(file.fileno()).st_size, 1)
            unpacked = file.peek(2)[:2] == b"\x1f\x8b"  # gzip
            source = cast(BinaryIO, Unpacked(file, path) if unpacked else file)
            first = source.read(_CHUNK_BYTES)
            if not first or b"\0" in first[:4096]:
                what = "binary" if first else "empty"
                raise NotALog(
                    f"{name} is {what}: give --log the text that the training run printed"
                )
            yield first
            for block in iter(lambda: source.read(_CHUNK_BYTES), b""):
                progress("reading the log", min(1.0, file.tell() / size))
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedLog(
            f"{name} is truncated or damaged gzip: unpack it and give --log the text"
        ) from error
    except OSError as error:
        raise LogNotFound(f"{name} cannot be read: check the path given to --log") from error


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of whole lines, each with its line end."""
    rest = b""
    for block in blocks:
        data = rest + block
        cut = data.rfind(b"\n") + 1
        rest = data[cut:][: LONGEST_LINE.whole + 1]
        if cut:
            yield data[:cut]
    if rest:
        yield rest + b"\n"


class _Reading:
    """What was read so far; what has the name of a field of `TrainingLog` becomes that."""

    def __init__(self, name: str, known: KnownLines) -> None:
        self.name, self.line_count, self.skipped_count = name, 0, 0
        self.versions = dict[str, str]()
        self.loading_fracs = deque[float](maxlen=int(iterations.KEPT.value))
        self.batch_ns = deque[int](maxlen=int(iterations.KEPT.value))
        self._kept = defaultdict[str, list[Any]](list)
        self._known, self._iterations = known, iterations.IterationLines()
        self._tracebacks, self._blocks = memory.Tracebacks(), blocks.Blocks(name)
        self._steps = step_lines.StepLines()
        self.figures = self._steps.figures
        self._count = Counter[str]()
        self._failed = False
        self._sizes = dict[str, Setting]()
        self._first_error: Message | None = None
        self._error_text = ""

    def _keep(self, field: str, item: object) -> bool:
        """Whether there is an item; a field keeps so many."""
        if item is not None and len(self._kept[field]) < _KEPT[field].value:
            self._kept[field].append(item)
        return item is not None

    def take_chunk(self, chunk: bytes, words: tuple[bytes, ...]) -> None:
        """Take the lines that hold one of `words`; within an open block all."""
        chunk = self._readable(chunk)
        starts = _line_starts(chunk, words)
        position, number, place = 0, self.line_count + 1, 0
        self.line_count += chunk.count(b"\n")
        while position < len(chunk):
            start = position
            if not self._blocks.open:
                place = bisect_left(starts, position, place)
                if place == len(starts):
                    return
                start = starts[place]
            number += chunk.count(b"\n", position, start)
            end = chunk.index(b"\n", start)
            self._take(number, chunk[start:end].decode().rstrip("\r"))
            position, number = end + 1, number + 1

    def _readable(self, chunk: bytes) -> bytes:
        """The chunk with lines that are no text, or too long, emptied and noted."""
        if _decodes(chunk) and not _has_long_line(chunk):
            return chunk
        lines = chunk.split(b"\n")
        for place, line in enumerate(lines):
            if len(line) > LONGEST_LINE.value or not _decodes(line):
                lines[place] = b""
                self.skipped_count += 1
                self._keep("skipped", self.line_count + 1 + place)
        return b"\n".join(lines)

    def _take(self, number: int, text: str) -> None:
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        if self._blocks.open:
            self._blocks.take(number, text)
        elif self._iterations.take(number, text):
            if holds_one(text, _NOT_A_NUMBER):
                self._known_line(number, text)
        elif not (
            self._traceback(text) or self._memory_report(number, text) or self._waited(number, text)
        ):
            self._said(number, text)

    def _waited(self, number: int, text: str) -> bool:
        """A line of a step of another trainer, or a timer of batches."""
        if (batch_ns := own_lines.batch_ns_in(text)) is not None:
            self.batch_ns.append(batch_ns)
            return True
        if not (step := self._steps.take(number, text)):
            return False
        iteration, report, loading_frac = step
        if iteration:
            self._iterations.add(iteration)
        self._keep("memory", report)
        if 0 < loading_frac <= 1:
            self.loading_fracs.append(loading_frac)
        return True

    def _traceback(self, text: str) -> bool:
        if "Traceback (most recent" in text:
            self._failed = True
            self._tracebacks.begin(text)
            return True
        if 'File "' not in text:
            return False
        self._tracebacks.frame(text)
        for package, version in blocks.versions_of_frame(text).items():
            self.versions.setdefault(package, version)
        return True

    def _memory_report(self, number: int, text: str) -> bool:
        is_report = self._keep("memory", memory.logged_memory(number, text))
        return self._keep("theoretical", memory.theoretical_memory(number, text)) or is_report

    def _said(self, number: int, text: str) -> None:
        if self._blocks.begins(number, text):
            return
        for package, version in blocks.versions_in(text).items():
            self.versions.setdefault(package, version)
        if memory.is_out_of_memory(text):
            error = memory.out_of_memory(number, text, self._tracebacks.end(text))
            self._error_text = text if self._keep("out_of_memory", error) else ""
            self._failed = True
            self._first_error = self._first_error or Message("out-of-memory", number)
            return
        if self._error_text and memory.goes_on(
            text
        ):  # of an error that was pasted in several lines
            last = self._kept["out_of_memory"].pop()
            self._error_text = f"{self._error_text} {text}"
            self._keep(
                "out_of_memory", memory.out_of_memory(last.line, self._error_text, last.stage)
            )
            return
        self._error_text = ""
        self._sizes = own_lines.sizes_in(text, f"{self.name}:{number}") | self._sizes
        known = self._known_line(number, text)
        if not self._first_error:
            is_raised = known and self._known.is_raised(known)
            self._first_error = known if is_raised else own_lines.error_in(number, text)

    def _known_line(self, number: int, text: str) -> Message | None:
        known = self._known.message(number, text)
        if known and self._count[known.id] < MESSAGES_KEPT.value:
            self._count[known.id] += 1
            self._kept["messages"].append(known)
        return known

    def log(self) -> TrainingLog:
        timed, error = self._iterations.result(), self._first_error
        if timed and self._iterations.planned is None and (rate := timed[-1].tflops_per_gpu):
            self.figures.setdefault("tflops_per_gpu", (rate, rate))
        has_begun = bool(timed or self._count["training-begins"])
        has_ended = bool(self._failed or self._count["ended"] or self._iterations.last_of_run)
        printed = self._blocks.settings(self.versions.get("core"))
        if self._sizes:  # the line that names the ranks, under what blocks say
            printed = Settings(self._sizes).under(printed or Settings())
        kept = {field: tuple(several) for field, several in self._kept.items()}
        return copied(
            TrainingLog,
            self,
            iterations=timed,
            settings=printed,
            stopped=not has_ended if has_begun else None,
            planned_iterations=self._iterations.planned,
            unknown_error=error if error and error.id == "unknown-error" else None,
            loading_fracs=tuple(self.loading_fracs),
            batch_ns=tuple(self.batch_ns),
            **kept,
        )


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_long_line(chunk: bytes) -> bool:
    position, longest = 0, LONGEST_LINE.whole
    while len(chunk) - position > longest:
        end = chunk.rfind(b"\n", position, position + longest + 1)
        if end < 0:
            return True
        position = end + 1
    return False


def _line_starts(chunk: bytes, words: tuple[bytes, ...]) -> list[int]:
    """Where lines begin that hold one of the words, in order."""
    starts = set()
    for word in words:
        at = chunk.find(word)
        while at >= 0:
            starts.add(chunk.rfind(b"\n", 0, at) + 1)
            at = chunk.find(word, chunk.index(b"\n", at))
    return sorted(starts)


def _words(known: KnownLines) -> tuple[bytes, ...]:
    """What the readers look for; a word that holds another one of them adds nothing."""
    words = {
        *iterations.WORDS,
        *memory.WORDS,
        *known.words(),
        *blocks.WORDS,
        *own_lines.WORDS,
        *step_lines.words(),
    }
    return tuple(word for word in sorted(words) if not any(part in word for part in words - {word}))
