"""A log's lines in bounded memory: only those that hold a word somebody looks for, each with its number.

Reading every line of a long log into Python takes longer than searching its bytes for a few words, so words
are searched first, a chunk at a time.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from traces.errors import InputError
from traces.files.plain_file import no_file
from traces.files.unpacked import Unpacked
from traces.limits import Limit
from traces.progress import Progress

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
