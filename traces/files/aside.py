"""What is made is made aside, in a folder of this run alone, and moved to its name once it is whole.

A run that is killed leaves its folder. The next run in that place removes it at once where it surely may: the
run was on this machine, and its lock is free, which the kernel sees to whatever ended it. A folder of another
machine, whose locks may not be seen here, goes once nothing was written in it for a day.
"""

import fcntl
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = ".moe-diag-"
_LEFT_OVER_S: Final = 24 * 3600
_POLL_S: Final = 0.1


@contextmanager
def aside(place: Path) -> Iterator[Path]:
    """A new folder in `place`, gone afterwards. Raises `OSError` where it cannot be made."""
    folder, lock = _locked_folder(place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def write_whole(path: Path, data: bytes, replace: bool = True) -> None:
    """Write a file that appears whole or not at all. Raises `OSError`, `FileExistsError` unless `replace`."""
    with aside(path.parent) as folder:
        made = folder / "made"
        made.write_bytes(data)
        if replace:
            made.replace(path)
        else:
            move_to_new(made, path)


def move_to_new(made: Path, path: Path) -> None:
    """Move to a name that must not exist; raises `FileExistsError` where it has appeared meanwhile."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name was checked before
        made.replace(path)


def sweep(place: Path, undo: Callable[[Path], None] = lambda _: None) -> None:
    """Remove what killed runs left in `place`, after `undo` of each folder; what cannot be removed stays."""
    for path in place.glob(_lock_name("*")):
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(path, lock):
                    path.unlink()
            finally:
                os.close(lock)
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another run may be removing it, or it is another user's
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _is_left(folder, lock):
                    undo(folder)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def one_at_a_time(place: Path, name: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Be the only run that holds this name in `place`, by a file that is made for that and gone afterwards.

    `waiting` is called about every 0.1 s while another run holds it. Where a file system has no locks, all
    go on at once. Raises `OSError` where the file cannot be made.
    """
    path = place / _lock_name(name)
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait_for(lock, waiting)
            if _is_still(path, lock):  # else it went with the run that held it
                break
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _locked_folder(place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{_machine()}-", dir=place))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():  # else another run took it for left before it was locked
                return folder, lock
            os.close(lock)


def _lock_name(name: str) -> str:
    return f"{_PREFIX}{name}.lock"


def _is_still(path: Path, opened: int) -> bool:
    """Whether a path still leads to the file that was opened."""
    try:
        return path.stat().st_ino == os.fstat(opened).st_ino
    except FileNotFoundError:
        return False


def _wait_for(lock: int, waiting: Callable[[], None]) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            time.sleep(_POLL_S)
        except OSError:  # a file system without locks
            return
        else:
            return


def _is_left(folder: Path, lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _is_old(folder)
    return folder.name.startswith(f"{_PREFIX}{_machine()}-") or _is_old(folder)


def _is_old(folder: Path) -> bool:
    """Whether all in it is a day away from now; times after now are of a clock that was set back."""
    now = time.time()
    return all(abs(now - path.lstat().st_mtime) > _LEFT_OVER_S for path in (folder, *folder.iterdir()))


def _machine() -> str:
    """What tells the folders of this machine from those of others, without its name."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
