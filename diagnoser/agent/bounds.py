"""What each call of a tool may read and take.

Memory is bounded by the system itself (`RLIMIT_DATA`): what numpy and SQLite ask for beyond it
raises MemoryError, and processes that a call starts, nsys too, have the same bound. Address space
is not bounded: libraries reserve far more of it than they use. No other system than Linux counts
so.
"""

import os
import resource
import sys
from pathlib import Path
from typing import Final

from traces.errors import InputError, UsageError
from traces.frozen import frozen
from traces.limits import Limit

TIME: Final = Limit(300, "seconds", "ours: ten million kernels take 92 s (docs/robustness.md)")
MEMORY: Final = Limit(
    8 << 30, "bytes", "ours: ten million kernels take 4.6 GB (docs/robustness.md)"
)


@frozen
class Bounds:
    """The folder that may be read, and time and memory of a call.

    `device` and `inode` say which folder it was when the server began: another in its place is
    none.
    """

    root: Path
    device: int
    inode: int
    time_s: float = TIME.value
    memory_bytes: int = MEMORY.whole


def bounds_of(root: Path | None) -> Bounds:
    """The root as it was typed. Raises `UsageError` for what is no folder."""
    folder = Path() if root is None else root
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder. Give another with --root.")
    if not root and folder.resolve() == Path("/"):
        raise UsageError(
            "the working folder is /, so that everything could be read. Type moe-diag mcp --root "
            "FOLDER, or --root / if that is meant."
        )
    status = folder.stat()
    return Bounds(folder.resolve(), status.st_dev, status.st_ino)


def enter(bounds: Bounds) -> None:
    """Work in the root. Raises `InputError` where it is gone, or another folder is in its place."""
    try:
        os.chdir(bounds.root)
        status = Path().stat()
    except OSError as error:
        raise InputError(
            f"{bounds.root} cannot be read ({error.strerror}). Start moe-diag mcp again."
        ) from None
    if (status.st_dev, status.st_ino) != (bounds.device, bounds.inode):
        raise InputError(f"{bounds.root} is another folder than before. Start moe-diag mcp again.")


def bound_memory(bounds: Bounds) -> None:
    """This process, and what it starts, takes no more memory; less where the system allows less."""
    if sys.platform != "linux":
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    ours = bounds.memory_bytes if most == resource.RLIM_INFINITY else min(bounds.memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (ours, most))
