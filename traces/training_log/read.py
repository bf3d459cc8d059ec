"""Reads a training log into facts: line by line, in bounded memory, and whatever odd lines it holds.

Reading every line of a long log into Python takes longer than searching its bytes for a few words, so words
are searched first, a chunk at a time.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from traces.errors import InputError
from traces.files.plain_file import no_file
from traces.files.unpacked import Unpacked
from traces.limits import Limit
from traces.progress import Progress, silent
from traces.settings.settings import Setting, Settings
from traces.training_log import blocks, iterations, memory, own_lines
from traces.training_log.known_lines import KnownLines
from traces.training_log.log import LoggedMemory, Message, OutOfMemory, TheoreticalMemory, TrainingLog

LONGEST_LINE: Final = Limit(
    65_536, "bytes", "ours: far above any line of a trainer; progress bars go above it"
)
SKIPPED_KEPT: Final = Limit(1_000, "lines", "ours: enough to look them up, and bounded")
_CHUNK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"


class LogNotFound(InputError):
    """The path names no file that can be read."""


class NotALog(InputError):
    """The file is empty or no text."""


class DamagedLog(InputError):
    """The compressed log is truncated or damaged."""


class Taker(Protocol):
    """Takes the lines that hold one of the words; all lines while `whole` is set."""

    whole: bool

    def take(self, number: int, text: str) -> None:
        """Take one line, without its end."""


class LogLines:
    """The lines of one log. After `give`, `count` is how many there were."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self.count = 0
        self.skipped: list[int] = []
        self.skipped_count = 0
        self._path = path
        self._progress = progress

    def give(self, words: tuple[bytes, ...], taker: Taker) -> None:
        """Hand every line that holds one of `words` to `taker`, in order.

        Raises:
            LogNotFound: missing or not readable. NotALog: empty or binary. DamagedLog: its gzip is broken.
        """
        for chunk in self._chunks():
            text = self._readable(chunk)
            self._search(text, words, taker)
            self.count += text.count(b"\n")

    def _search(self, chunk: bytes, words: tuple[bytes, ...], taker: Taker) -> None:
        starts = _line_starts(chunk, words)
        position, number, place = 0, self.count + 1, 0
        while position < len(chunk):
            start = position
            if not taker.whole:
                while place < len(starts) and starts[place] < position:
                    place += 1
                if place == len(starts):
                    return
                start = starts[place]
            number += chunk.count(b"\n", position, start)
            end = chunk.index(b"\n", start)
            taker.take(number, chunk[start:end].decode().rstrip("\r"))
            position, number = end + 1, number + 1

    def _chunks(self) -> Iterator[bytes]:
        """Pieces of whole lines, each with its line end."""
        rest = b""
        for block in self._blocks():
            data = rest + block
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if len(rest) > LONGEST_LINE.value:
                rest = rest[: int(LONGEST_LINE.value) + 1]
            if cut:
                yield data[:cut]
        if rest:
            yield rest + b"\n"

    def _blocks(self) -> Iterator[bytes]:
        name = self._path.name
        if what := no_file(self._path):
            raise LogNotFound(f"{name} is {what}: give --log the text that the training run printed")
        try:
            with self._path.open("rb") as file:
                size = max(self._path.stat().st_size, 1)
                unpacked = file.peek(2)[:2] == _GZIP
                source = cast(BinaryIO, Unpacked(file, self._path) if unpacked else file)
                first = source.read(_CHUNK_BYTES)
                if not first:
                    raise NotALog(f"{name} is empty: give --log the text that the training run printed")
                if b"\0" in first[:4096]:
                    raise NotALog(f"{name} is binary: give --log the text that the training run printed")
                yield first
                for block in iter(lambda: source.read(_CHUNK_BYTES), b""):
                    self._progress("reading the log", min(1.0, file.tell() / size))
                    yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DamagedLog(
                f"{name} is truncated or damaged gzip: unpack it and give --log the text"
            ) from error
        except OSError as error:
            raise LogNotFound(f"{name} cannot be read: check the path given to --log") from error

    def _readable(self, chunk: bytes) -> bytes:
        """The chunk with lines that are no text, or too long, emptied and noted."""
        if _decodes(chunk) and not _has_long_line(chunk):
            return chunk
        lines = chunk.split(b"\n")
        for place, line in enumerate(lines):
            if len(line) > LONGEST_LINE.value or not _decodes(line):
                lines[place] = b""
                self.skipped_count += 1
                if len(self.skipped) < SKIPPED_KEPT.value:
                    self.skipped.append(self.count + 1 + place)
        return b"\n".join(lines)


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_long_line(chunk: bytes) -> bool:
    position, longest = 0, int(LONGEST_LINE.value)
    while len(chunk) - position > longest:
        end = chunk.rfind(b"\n", position, position + longest + 1)
        if end < 0:
            return True
        position = end + 1
    return False


def _line_starts(chunk: bytes, words: tuple[bytes, ...]) -> list[int]:
    """Where lines begin that hold one of the words, in order."""
    starts: set[int] = set()
    find: Callable[[bytes, int], int] = chunk.find
    for word in words:
        at = find(word, 0)
        while at >= 0:
            starts.add(chunk.rfind(b"\n", 0, at) + 1)
            at = find(word, chunk.index(b"\n", at))
    return sorted(starts)


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
        self._tracebacks = memory.Tracebacks()
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
        if python := blocks.python_of(text):
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
        for package, version in blocks.versions_in(text).items():
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
        printed = self._blocks.settings(self._versions.get("core"))
        if not self._sizes:
            return printed
        return Settings(self._sizes).under(printed or Settings())

    def _stopped(self, has_iterations: bool) -> bool | None:
        if not (has_iterations or self._count["training-begins"]):
            return None
        return not (self._failed or self._count["ended"] or self._iterations.last_of_run)


def _words(known: KnownLines) -> tuple[bytes, ...]:
    """What the readers look for; a word that holds another one of them adds nothing."""
    words = {
        *iterations.WORDS,
        *memory.WORDS,
        *known.words(),
        *blocks.WORDS,
        *own_lines.WORDS,
    }
    return tuple(word for word in sorted(words) if not any(one in word for one in words - {word}))
