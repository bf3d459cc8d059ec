"""What a user names, before it is opened: to read a pipe or a device may never end.

Whoever opens a file that was named asks here first; the words beside the answer are the asker's own.
"""

import stat
from pathlib import Path
from typing import Final

from traces.limits import Limit
from traces.spelling import megabytes

MOST_TEXT: Final = Limit(
    64 << 20, "bytes", "ours: a map of a million ranks has 30 MB, and an earlier result less"
)


def no_file(path: Path) -> str | None:
    """What stands at a path in place of a file; None for a file, and for what opening it will explain."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    return None if stat.S_ISREG(mode) else "a pipe or a device"


def read_text(path: Path) -> str:
    """A short text, of which a mark of its byte order is left out.

    Raises OSError where it cannot be read, ValueError for what is no file, no UTF-8, or too much.
    """
    if what := no_file(path):
        raise ValueError(f"it is {what}")
    if path.stat().st_size > MOST_TEXT.value:
        raise ValueError(f"it is over {megabytes(MOST_TEXT.value)} MB")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
