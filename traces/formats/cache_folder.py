"""The folder our exports are kept in, and a folder inside it for one run to work in."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from traces.errors import OutputNotWritable

_SCRATCH: Final = "moe-diag-export-"
_LEFT_OVER_S: Final = 24 * 3600


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/moe-diag`, else `~/.cache/moe-diag`; `OutputNotWritable` where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # the XDG rules: anything else is ignored
        return Path(given) / "moe-diag"
    try:
        return Path.home() / ".cache" / "moe-diag"
    except RuntimeError:
        raise OutputNotWritable(
            "there is no home folder for the cache: give one with --cache-dir DIR"
        ) from None


@contextmanager
def scratch_folder(cache_dir: Path) -> Iterator[Path]:
    """A folder of this run alone inside `cache_dir`, which is made where absent; gone afterwards.

    Those of killed runs go once nothing in them was written for a day. Raises `OutputNotWritable`.
    """
    try:
        cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_left_over(cache_dir)
        folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=cache_dir))
    except OSError as error:
        raise not_writable(cache_dir, error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def alone_in(cache_dir: Path) -> Iterator[None]:
    """Keep other runs out while files that belong together are moved in; where locks fail, go on without."""
    folder = os.open(cache_dir, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def not_writable(cache_dir: Path, error: OSError) -> OutputNotWritable:
    """The error to raise where writing into the cache folder failed."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OutputNotWritable(
        f"cannot write the cache folder {cache_dir} ({reason}): give another with --cache-dir DIR"
    )


def _remove_left_over(cache_dir: Path) -> None:
    for folder in cache_dir.glob(f"{_SCRATCH}*"):
        with suppress(OSError):  # another run may be removing it
            newest_s = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
            if time.time() - newest_s > _LEFT_OVER_S:
                shutil.rmtree(folder, ignore_errors=True)
