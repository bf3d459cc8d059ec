"""One run at a time, by a file that is made for that and gone afterwards."""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from traces.files.folder import Folder

PREFIX: Final = ".moe-diag-"
"""What the names of all begin with that is there for a while only."""
LOCK: Final = ".lock"
_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_POLL_S: Final = 0.1


@contextmanager
def one_at_a_time(place: Folder, name: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Be the only run that holds this name in `place`.

    `waiting` is called about every 0.1 s while another run holds it. Where a file system has no
    locks, all go on at once. Raises `OSError` where the file cannot be made, or is none that we
    made.
    """
    own = f"{PREFIX}{name}{LOCK}"
    while True:
        lock = os.open(own, _FLAGS | os.O_CREAT, 0o600, dir_fd=place.fd)
        try:
            if not _is_ours(lock):
                raise OSError(f"{own} in it is no lock of yours: remove it")
            _wait_for(lock, waiting)
            if place.is_still(own, lock):  # else it went with the run that held it
                break
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            place.remove(own)
        os.close(lock)


def clear_locks(place: Folder) -> None:
    """Remove locks that killed runs left in `place`."""
    for name in place.names():
        if name.startswith(PREFIX) and name.endswith(LOCK):
            with suppress(OSError):
                _clear(place, name)


def _clear(place: Folder, name: str) -> None:
    lock = os.open(name, _FLAGS, dir_fd=place.fd)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_ours(lock) and place.is_still(name, lock):
            place.remove(name)
    finally:
        os.close(lock)


def _is_ours(lock: int) -> bool:
    """A plain file of ours, empty, without a second name; it has none where its run has just
    removed it.
    """
    status = os.fstat(lock)
    is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink <= 1
    return is_plain and status.st_uid == os.geteuid() and not status.st_size


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
