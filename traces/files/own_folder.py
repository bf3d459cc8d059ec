"""Folders of the user's own, for what is trusted later: kept exports, compiled loops, notes of
runs.

Nobody else may change what is in them, or put another folder in their place.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from traces.files.folder import is_own_private_folder


def make_own(path: Path) -> None:
    """Make a folder, and those above it that are not there, as the XDG rules say: for the user
    alone.
    """
    for folder in reversed((path, *path.parents)):
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700, exist_ok=True)  # another run may make it at once


def way_in(path: Path) -> str | None:
    """How another user could change what is in a folder, or replace it; None where none could.

    Raises `OSError` where it cannot be looked at.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder"
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if _others_write(status):
        return "others can write into it"
    return _way_from_above(path)


def way_beside(path: Path) -> str | None:
    """How another user could put files beside one that the user named, or replace the folder of
    both.

    None where none could. Raises `OSError` where it cannot be looked at.
    """
    folder, above = path.parent.resolve(), [*_above(path)]
    if folder in above and folder.stat().st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    if folder in above and _others_write(folder.stat()):
        return "others can write into it"
    return _way_from_above(path)


def is_surely_ours(path: Path) -> bool:
    """Whether what stands there, in folders of it too, may even be run.

    Nobody else may enter it, and none above is of a user who is not trusted with that. Raises
    `OSError` where it cannot be looked at.
    """
    is_private = is_own_private_folder(path.lstat()) and way_in(path) is None
    return is_private and not any(map(_is_of_another, _above(path)))


def _way_from_above(path: Path) -> str | None:
    for folder in _above(path):
        if _is_shared(folder.stat()):
            return f"others can rename what is in {folder}"
    return None


def _above(path: Path) -> Iterator[Path]:
    """The folders above, as the path is written and as it leads.

    Those below one that nobody else may enter are left out: what their modes allow, nobody can do.
    """
    for start in {Path(os.path.abspath(path)), path.resolve()}:  # noqa: PTH100 - links are kept
        above = start.parents
        for parent in start.parents:
            status = parent.stat()
            if status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IXGRP | stat.S_IXOTH):
                above = parent.parents
        yield from above


def _is_shared(status: os.stat_result) -> bool:
    """Whether somebody else may rename what this user has there; a sticky bit leaves that to its
    owner.
    """
    is_guarded = status.st_mode & stat.S_ISVTX and status.st_uid in (0, os.geteuid())
    return _others_write(status) and not is_guarded


def _is_of_another(folder: Path) -> bool:
    """Whether a folder is another user's who may have put there what we take for ours.

    One in which we may not write was set up by the administrator, as where the root of a container
    shows as nobody's; root may write everywhere.
    """
    return folder.stat().st_uid not in (0, os.geteuid()) and os.access(folder, os.W_OK)


def _others_write(status: os.stat_result) -> bool:
    by_group = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
    return bool(status.st_mode & stat.S_IWOTH or by_group)


def _is_private(group: int) -> bool:
    """Whether this user alone is in a group, as in those that distributions make for each user."""
    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return (
        user.pw_gid == group and entry.gr_name == user.pw_name and {*entry.gr_mem} <= {user.pw_name}
    )
