"""What a user names, before it is opened: to read a pipe or a device may never end.

Whoever opens a file that was named asks here first; the words beside the answer are the asker's
own.
"""

import os
import stat
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Final

from traces.files.beneath import descriptor, opened
from traces.limits import Limit
from traces.spelling import megabytes

MOST_TEXT: Final = Limit(
    64 << 20,
    "bytes",
    "ours: what any machine holds; a map of a million ranks has 30 MB, an earlier result less, a "
    "text of an export under 1 MB",
)
WHOLE: Final = Limit(
    256 << 20,
    "bytes",
    "ours: as objects it takes 10 to 20 times that; PyTorch's dumps have some 100 MB",
)


def no_file(path: Path) -> str | None:
    """What stands at a path in place of a file; None for a file, and for what opening it will
    explain.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    return _other_than_file(mode)


def _other_than_file(mode: int) -> str | None:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISREG(mode):
        return None
    return "a pipe or a device"


def read_bytes(path: Path, most: int) -> bytes:
    """What a file begins with, no more than so many bytes; by few calls, as there may be thousands.

    Raises OSError where it cannot be read, ValueError, which says what it is, for what is no file.
    """
    try:
        file = descriptor(path)
    except OSError:
        if what := no_file(path):  # a socket, say
            raise ValueError(what) from None
        raise
    try:
        status = os.fstat(file)
        if what := _other_than_file(status.st_mode):
            raise ValueError(what)
        return os.read(file, min(status.st_size, most))
    finally:
        os.close(file)


def read_text(path: Path) -> str:
    """A short text, of which a mark of its byte order is left out.

    Raises OSError where it cannot be read, ValueError for what is no file, no UTF-8, no text, or
    too much.
    """
    if what := no_file(path):
        raise ValueError(f"it is {what}")
    with opened(path) as file:
        data = file.read(MOST_TEXT.whole + 1)
    if len(data) > MOST_TEXT.value:
        raise ValueError(f"it is over {megabytes(MOST_TEXT.value)} MB")
    try:
        text = TextIOWrapper(BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    if "\0" in text:  # no name or path has one
        raise ValueError("it is no text, it has zero bytes")
    return text
