"""A folder that was opened: what is done by its descriptor is done in that very folder.

Whatever its path leads to later does not matter. Names are those of its own entries, and no link is
followed.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from traces.frozen import frozen

_AS_IT_IS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
BY_NAME: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened whose entries may not be listed, as where others may only put files."""


@frozen
class Folder:
    """An open folder. `path` is what it was found by: for words, and for programs that take no
    descriptor.
    """

    fd: int
    path: Path

    @property
    def stat(self) -> os.stat_result:
        return os.fstat(self.fd)

    def found(self, name: str) -> os.stat_result | None:
        """What stands at a name, a link as such; None where nothing does."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_still(self, name: str, fd: int) -> bool:
        """Whether a name still leads to what was opened."""
        status = self.found(name)
        return status is not None and os.path.samestat(status, os.fstat(fd))

    def names(self) -> list[str]:
        """Its entries in order. Raises `OSError` where it may not be listed."""
        listed = os.open(".", _AS_IT_IS, dir_fd=self.fd)
        try:
            return sorted(os.listdir(listed))  # noqa: PTH208 - by descriptor
        finally:
            os.close(listed)

    @contextmanager
    def inner(self, name: str) -> Iterator["Folder"]:
        """A folder in it. Raises `OSError` for what is none, a link to one too."""
        inner = Folder(os.open(name, _AS_IT_IS, dir_fd=self.fd), self.path / name)
        try:
            yield inner
        finally:
            os.close(inner.fd)

    def new_folder(self, name: str, mode: int) -> None:
        os.mkdir(name, mode, dir_fd=self.fd)

    def write_new(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Write a file that must not be there yet."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, mode, dir_fd=self.fd), "wb") as file:
            file.write(data)

    @contextmanager
    def open_own(self, name: str) -> Iterator[BinaryIO]:
        """A plain file of this user, to read. Raises `OSError` for anything else.

        `FileNotFoundError` as well where it went away while it was opened.
        """
        # a pipe is not waited for
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self.fd), "rb") as file:
            status = os.fstat(file.fileno())
            if not status.st_nlink:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            if not is_own_file(status):
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
            yield file

    def read_own(self, name: str, most: int) -> bytes:
        """What such a file holds, no more than so many bytes."""
        with self.open_own(name) as file:
            return file.read(most)

    def move(self, name: str, other: "Folder", to: str) -> None:
        os.rename(name, to, src_dir_fd=self.fd, dst_dir_fd=other.fd)

    def remove(self, name: str) -> None:
        """Remove a file, or a link as such."""
        os.unlink(name, dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove a folder that is empty."""
        os.rmdir(name, dir_fd=self.fd)

    def clear(self) -> None:
        """Remove all that is in it, as far as that can be; links are removed and never followed."""
        for name in self.names():
            status = self.found(name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=self.fd)
            elif status is not None:
                self.remove(name)


@contextmanager
def open_folder(path: Path, follow: bool = True) -> Iterator[Folder]:
    """The folder at a path that the user named: links on the way are followed, once. Raises
    `OSError`.

    `follow`: also a link that stands at its end.
    """
    folder = Folder(os.open(path, BY_NAME | (0 if follow else os.O_NOFOLLOW)), path)
    try:
        yield folder
    finally:
        os.close(folder.fd)


def is_own_file(status: os.stat_result | None) -> bool:
    """Whether it is a plain file of this user that has no second name."""
    return (
        status is not None
        and stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and status.st_nlink == 1
    )


def is_own_private_folder(status: os.stat_result) -> bool:
    """Whether it is a folder of this user that nobody else may enter."""
    # a team's folder gives its group on, by a bit
    is_private = stat.S_IMODE(status.st_mode) & 0o777 == 0o700
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and is_private
