"""A file packed by gzip, read as what it holds, and no further than one of its kind ever unpacks.

A few kilobytes can unpack to gigabytes: such a file is made to fill memory or time, and is refused
once that shows.
"""

import gzip
from pathlib import Path
from typing import BinaryIO, Final

from traces.errors import UnpacksTooFar
from traces.files.plain_file import MOST_TEXT
from traces.limits import Limit

TIMES: Final = Limit(
    100,
    "times its size",
    "ours: recordings and results unpack to 3 to 21 times, logs to 17 (measured 2026-11-23), "
    "pickles with shared stacks to 30 values a byte; a bomb to 1,000",
)

_PIECE: Final = 1 << 20


class Unpacked(gzip.GzipFile):
    """What a packed file holds. Reading raises `UnpacksTooFar`, and what GzipFile raises for
    damage.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._packed, self._path, self._given = file, path, 0

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes; without a size all that there are."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        piece = super().read(size)
        self._given += len(piece)
        if self._given > MOST_TEXT.value + TIMES.value * self._packed.tell():
            raise UnpacksTooFar(
                f"{self._path} unpacks to more than {TIMES.value:.0f} times its size, as no "
                "recording, log or result does. If it is genuine, unpack it first: gunzip -k FILE"
            )
        return piece
