"""What each call of a tool may read and take: bounded without any option too."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from diagnoser.options.command import bytes_of, seconds_of
from traces.errors import UsageError
from traces.limits import Limit

TIME: Final = Limit(300, "seconds", "ours: ten million kernels take 92 s (docs/robustness.md)")
MEMORY: Final = Limit(8 << 30, "bytes", "ours: ten million kernels take 4.6 GB (docs/robustness.md)")
_TIMEOUT: Final = f"{TIME.value:.0f}s"
_MAX_MEMORY: Final = f"{int(MEMORY.value) >> 30}G" if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The folder that may be read, and time and memory of a call, as they are typed."""

    root: Path
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
    bounds = Bounds(folder.resolve(), timeout or _TIMEOUT, max_memory or _MAX_MEMORY)
    seconds_of(bounds.timeout)
    if bounds.max_memory is not None:
        bytes_of(bounds.max_memory)
    return bounds
