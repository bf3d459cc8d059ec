"""What is made is made aside, in a folder of this run alone, and moved to its name once it is
whole.

A run that is killed leaves its folder. The next run in that place removes it at once where it
surely may: a note of our own tells this very folder, and its lock is free, which the kernel sees to
whatever ended the run. A folder of another machine, whose locks may not be seen here, goes once
nothing was written in it for a day. Whatever else has such a name is left as it is, and told.
"""

import errno
import fcntl
import os
import secrets
import shlex
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from traces.files.folder import Folder, is_own_private_folder, open_folder
from traces.files.locks import LOCK, PREFIX
from traces.files.moved import MADE, NotPutBack, move_to_new, put_back
from traces.files.unfinished import forget, is_remembered, remember
from traces.notes import note
from traces.patterns import compiled
from traces.spelling import printable

_FORM: Final = compiled(r"\.moe-diag-([0-9a-f]{8})-[0-9a-f]{16}")
_LEFT_OVER_S: Final = 24 * 3600
_LONGEST: Final = 500


@contextmanager
def aside(place: Folder) -> Iterator[Folder]:
    """A new folder in `place`, gone afterwards. Raises `OSError` where it cannot be made."""
    name, own = _locked_folder(place)
    is_needed = False
    try:
        yield own
    except NotPutBack:
        is_needed = True
        raise
    finally:
        if not is_needed:
            _remove(place, name, own)
        os.close(own.fd)


@contextmanager
def appearing(path: Path) -> Iterator[Folder]:
    """A new folder that is at `path` once all is in it; not at all where anything is raised.

    Raises `OSError` where it cannot be, as where something but an empty folder is there.
    """
    with open_folder(path.parent) as place, aside(place) as own:
        own.new_folder(MADE, 0o777)
        with own.inner(MADE) as made:
            yield made
        try:
            own.move(MADE, place, path.name)
        except FileExistsError:  # what some file systems say of a folder that is not empty
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY)) from None


def write_whole(path: Path, data: bytes, replace: bool = True, mode: int = 0o666) -> None:
    """Write a file that appears whole or not at all. Raises `OSError`, `FileExistsError` unless
    `replace`.

    `mode`: of the file, as far as the user's mask lets it.
    """
    with open_folder(path.parent) as place:
        write_whole_in(place, path.name, data, replace, mode)


def write_whole_in(place: Folder, name: str, data: bytes, replace: bool, mode: int = 0o666) -> None:
    """The same in a folder that is open."""
    with aside(place) as own:
        own.write_new(MADE, data, mode)
        if replace:
            own.move(MADE, place, name)
        else:
            move_to_new(MADE, own, place, name)


def sweep(path: Path) -> None:
    """Remove what killed runs left in a folder, after putting back what they had moved.

    What is not surely theirs, or is not as they left it, is not touched, and noted.
    """
    with suppress(OSError), open_folder(path) as place:
        left = [
            name
            for name in place.names()
            if name.startswith(PREFIX) and not name.endswith(LOCK) and not _is_settled(place, name)
        ]
        if left:
            first = shlex.quote(printable(str(path / left[0]), _LONGEST))
            were = f"and {len(left) - 1} more like it were" if left[1:] else "was"
            note(
                f"{first} {were} left alone: not surely what a run of yours left there. "
                "Look into it, then remove it."
            )


def _is_settled(place: Folder, name: str) -> bool:
    """Whether nobody need look after a folder: its run goes on, or it is gone now."""
    try:
        with place.inner(name) as left:
            form = _FORM.fullmatch(name)
            is_of_this_machine = form is not None and form[1] == _machine()
            if _may_go_on(left, is_of_this_machine):
                return True
            if (
                form is None
                or not is_own_private_folder(left.stat)
                or left.stat.st_dev != place.stat.st_dev
            ):
                return False
            if not left.names():  # killed before it was noted: nothing is lost, whoever made it
                place.remove_folder(name)
                return True
            if not is_remembered(place, name, left, is_of_this_machine) or not put_back(
                place, left
            ):
                return False
            _remove(place, name, left)
    except OSError:
        return place.found(name) is None  # by its own run or another
    return True


def _remove(place: Folder, name: str, own: Folder) -> None:
    """What cannot be removed keeps its note; what somebody took elsewhere is empty, and needs
    none.
    """
    with suppress(OSError):
        own.clear()
        is_empty = not own.names()
        with suppress(OSError):
            place.remove_folder(name)
        if is_empty:
            forget(name)


def _locked_folder(place: Folder) -> tuple[str, Folder]:
    while True:
        name = f"{PREFIX}{_machine()}-{secrets.token_hex(8)}"
        place.new_folder(name, 0o700)
        try:
            with suppress(FileNotFoundError), place.inner(name) as made:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(made.fd, fcntl.LOCK_EX)
                # another run took it for left before it was locked
                if not place.is_still(name, made.fd):
                    continue
                if made.stat.st_uid != os.geteuid() or made.names():
                    raise PermissionError(f"another user put {name} there")
                remember(place, name, made)
                return name, Folder(os.dup(made.fd), made.path)  # the lock is of both
        except BaseException:  # Ctrl-C as well
            with suppress(OSError):
                place.remove_folder(name)
            raise


def _may_go_on(left: Folder, is_of_this_machine: bool) -> bool:
    try:
        fcntl.flock(left.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return not _is_old(left)
    return not is_of_this_machine and not _is_old(left)


def _is_old(left: Folder) -> bool:
    """Whether all in it is a day away from now; times after now are of a clock that was set
    back.
    """
    now = time.time()
    status = [left.stat, *filter(None, map(left.found, left.names()))]
    return all(abs(now - entry.st_mtime) > _LEFT_OVER_S for entry in status)


def _machine() -> str:
    """What tells the folders of this machine from those of others, without its name."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
