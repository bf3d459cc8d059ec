"""Which folders our own runs have made and not yet removed: a note of each in the user's own cache
folder.

A name, an owner, a mode and a time can all come out of an archive, so none of them shows who made a
folder. A note cannot: it tells the very folder, by device and inode, and where it stands.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from traces.errors import OutputNotWritable
from traces.files.cache_folder import default_cache_dir
from traces.files.folder import Folder, open_folder
from traces.files.own_folder import make_own, way_in

_MOST: Final = 1_000


def remember(place: Folder, name: str, made: Folder) -> None:
    """Note a folder that was made, while it is empty; where there is no place for notes, there is
    none.
    """
    with suppress(OSError), _notes() as notes:
        try:
            notes.write_new(name, json.dumps(_folder_numbers(place, made)).encode(), 0o600)
        except OSError:
            notes.remove(name)
            raise


def is_remembered(place: Folder, name: str, left: Folder, is_of_this_machine: bool) -> bool:
    """Whether a run of this user made this very folder in this very place, and did not get to
    remove it.

    A disk that several machines share has another device number on each.
    """
    try:
        with _notes() as notes:
            noted = json.loads(notes.read_own(name, _MOST))
    except (OSError, ValueError):
        return False
    folders = _folder_numbers(place, left)
    return bool(noted == folders or (not is_of_this_machine and _inodes(noted) == _inodes(folders)))


def forget(name: str) -> None:
    """Remove the note of a folder that is gone."""
    with suppress(OSError), _notes() as notes:
        notes.remove(name)


@contextmanager
def _notes() -> Iterator[Folder]:
    """The folder of the notes. Raises `OSError` where it cannot be, or is not this user's alone."""
    try:
        path = default_cache_dir() / "unfinished"
    except OutputNotWritable as error:
        raise FileNotFoundError(str(error)) from None
    make_own(path)
    if why := way_in(path):
        raise PermissionError(why)
    with open_folder(path) as notes:
        yield notes


def _folder_numbers(place: Folder, folder: Folder) -> dict[str, list[int]]:
    return {"place": _device_and_inode(place.stat), "folder": _device_and_inode(folder.stat)}


def _device_and_inode(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino]


def _inodes(folders: object) -> object:
    if isinstance(folders, dict):
        return {key: numbers[-1:] for key, numbers in folders.items()}
    return None
