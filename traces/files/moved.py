"""Files moved into a folder that is there, all of them or none, whatever ends the run.

Before anything is moved, a list says which files are to come and which they replace, by device,
inode and size. While it is there the move is unfinished, and whoever finds it puts back, by that
list alone, what is still as it says.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import ValidationError, json

from traces.files.folder import Folder, is_own_private_folder
from traces.toml_tables import TableRow

MADE: Final = "made"
_REPLACED: Final = "replaced"
_LIST: Final = "moves"
_UNWRITTEN: Final = "moves.part"
_MOST: Final = 1 << 20
_MOST_NAMES: Final = 2
"""Of a file of ours while it is moved: the one it was made under, and its own."""


class NotPutBack(Exception):
    """What was moved could not be put back; it lies in the folder of the run, which is kept."""


class _File(NamedTuple):
    """Which file it is, wherever it is moved."""

    device: int
    inode: int
    size_bytes: int


class _Moves(TableRow):
    """Names -> files to come, and those that they replace; `last`: once it is there, all are."""

    last: str
    made: Mapping[str, _File]
    replaced: Mapping[str, _File]


def move_to_new(made: str, source: Folder, place: Folder, name: str) -> None:
    """Move to a name that must not exist; raises `FileExistsError` where it does."""
    try:
        os.link(made, name, src_dir_fd=source.fd, dst_dir_fd=place.fd, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if place.found(name) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        source.move(made, place, name)


def move_together(own: Folder, place: Folder, names: Sequence[str], force: bool) -> None:
    """Move files from `made` of a run's own folder into a folder, in this order.

    `force`: replace what is there. Raises `FileExistsError` for a name that exists and may not be
    replaced, `OSError`, and `NotPutBack` where what was replaced cannot go back to its name.
    """
    own.new_folder(_REPLACED, 0o700)
    with own.inner(MADE) as made, own.inner(_REPLACED) as replaced:
        moves = _Moves(names[-1], _files(made, names), _files(place, names if force else ()))
        own.write_new(_UNWRITTEN, json.encode(moves), 0o600)
        own.move(_UNWRITTEN, own, _LIST)
        try:
            for name in names:
                if name in moves.replaced:
                    place.move(name, replaced, name)
                    if _file(replaced.found(name)) != moves.replaced[name]:
                        raise OSError(f"{name} was changed meanwhile")
                move_to_new(name, made, place, name)
            own.remove(_LIST)
        except BaseException as error:  # Ctrl-C as well
            if not put_back(place, own):
                raise NotPutBack(str(own.path / _REPLACED)) from error
            raise


def put_back(place: Folder, left: Folder) -> bool:
    """Take what was moved out of a folder again, and move back what it replaced, unless all was
    there.

    False, with nothing touched, where anything is not as the list says. `left`: the folder of the
    run.
    """
    if left.found(_LIST) is None:
        return True
    try:
        moves = json.decode(left.read_own(_LIST, _MOST), type=_Moves)
        with left.inner(MADE) as made, left.inner(_REPLACED) as replaced:
            if not _is_as_listed(moves, left, made, replaced, place):
                return False
            if not _is_at(place, moves.last, moves.made[moves.last]):
                # the last to come goes first, so that no half of them looks whole
                for name in sorted(moves.made, key=lambda name: name != moves.last):
                    if _is_at(place, name, moves.made[name]):
                        place.remove(name)
                for name in moves.replaced:
                    if replaced.found(name) is not None:
                        replaced.move(name, place, name)
    except (OSError, ValidationError, ValueError):
        return False
    left.remove(_LIST)
    return True


def _is_as_listed(
    moves: _Moves, left: Folder, made: Folder, replaced: Folder, place: Folder
) -> bool:
    names = {*moves.made, *moves.replaced}
    return (
        all(name not in ("", ".", "..") and "/" not in name for name in names)
        and moves.last in moves.made
        and {*left.names()} == {MADE, _REPLACED, _LIST}
        and _holds_only(made, moves.made)
        and _holds_only(replaced, moves.replaced)
        and all(_may_go(place, name, file) for name, file in moves.made.items())
        # what was replaced, if it is here, can go back to its name
        and all(
            place.found(name) is None
            or _is_at(place, name, moves.made.get(name))
            or replaced.found(name) is None
            for name in moves.replaced
        )
    )


def _holds_only(folder: Folder, listed: Mapping[str, _File]) -> bool:
    return is_own_private_folder(folder.stat) and all(
        _is_at(folder, name, listed.get(name)) for name in folder.names()
    )


def _may_go(place: Folder, name: str, made: _File) -> bool:
    """Whether a name holds our file as it was made, or one that is none of ours and stays."""
    status = place.found(name)
    if status is None or (status.st_dev, status.st_ino) != made[:2]:
        return True
    return _file(status) == made and stat.S_ISREG(status.st_mode) and status.st_nlink <= _MOST_NAMES


def _is_at(folder: Folder, name: str, file: _File | None) -> bool:
    return file is not None and _file(folder.found(name)) == file


def _files(folder: Folder, names: Sequence[str]) -> dict[str, _File]:
    """Those of these names that are files of a folder."""
    return {name: file for name in names if (file := _file(folder.found(name)))}


def _file(status: os.stat_result | None) -> _File | None:
    """Which file it is; a folder is none."""
    if status is None or stat.S_ISDIR(status.st_mode):
        return None
    return _File(status.st_dev, status.st_ino, status.st_size)
