"""What each call of a tool may read and take: bounded without any option too."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from diagnoser.options.command import bytes_of, seconds_of
from traces.errors import InputError, UsageError
from traces.limits import Limit

TIME: Final = Limit(300, "seconds", "ours: ten million kernels take 92 s (docs/robustness.md)")
MEMORY: Final = Limit(8 << 30, "bytes", "ours: ten million kernels take 4.6 GB (docs/robustness.md)")
_TIMEOUT: Final = f"{TIME.value:.0f}s"
_MAX_MEMORY: Final = f"{int(MEMORY.value) >> 30}G" if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The folder that may be read, and time and memory of a call, as they are typed.

    `device` and `inode` say which folder it was when the server began: another in its place is none.
    """

    root: Path
    device: int
    inode: int
    timeout: str = _TIMEOUT
    max_memory: str | None = _MAX_MEMORY


def bounds_of(root: Path | None, timeout: str | None, max_memory: str | None) -> Bounds:
    """As they were typed. Raises `UsageError` for what is no folder, no time or no size."""
    folder = Path() if root is None else root
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder. Give another with --root.")
    if root is None and folder.resolve() == Path("/"):
        raise UsageError(
            "the working folder is /, so that everything could be read. Type moe-diag mcp --root FOLDER, or "
            "--root / if that is meant."
        )
    found = folder.stat()
    bounds = Bounds(
        folder.resolve(), found.st_dev, found.st_ino, timeout or _TIMEOUT, max_memory or _MAX_MEMORY
    )
    seconds_of(bounds.timeout)
    if bounds.max_memory is not None:
        bytes_of(bounds.max_memory)
    return bounds


def enter(bounds: Bounds) -> None:
    """Work in the root. Raises `InputError` where it is gone, or another folder is in its place."""
    try:
        os.chdir(bounds.root)
        found = Path().stat()
    except OSError as error:
        raise InputError(
            f"{bounds.root} cannot be read ({error.strerror}). Start moe-diag mcp again."
        ) from None
    if (found.st_dev, found.st_ino) != (bounds.device, bounds.inode):
        raise InputError(f"{bounds.root} is another folder than before. Start moe-diag mcp again.")
