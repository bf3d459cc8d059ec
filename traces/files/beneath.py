"""Opening a file that was named: any, or in a process that serves a program one beneath its folders
alone.

A name is followed once, links and all, to see where it leads. Then the way there is walked from the
folder itself, and no link is followed any more: whatever is exchanged meanwhile, nothing outside is
ever opened.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import Final

from traces.errors import InputError
from traces.files.folder import BY_NAME
from traces.frozen import frozen

_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""How all files are opened: a pipe that takes a file's place holds nobody up."""


class OutsideRoot(InputError):
    """A name leads out of the folders that may be read."""


@frozen
class _Root:
    """A folder by its path without links, and opened."""

    path: str
    folder: int


_roots: ContextVar[Sequence[_Root]] = ContextVar("roots", default=())
"""None: everything may be opened."""


@contextmanager
def only_beneath(*folders: Path) -> Iterator[None]:
    """Let nothing be opened within that does not lie beneath one of these; the first is named in
    errors.

    Raises `InputError` for what is no folder.
    """
    with ExitStack() as undo:
        roots = list[_Root]()
        for folder in folders:
            roots.append(_opened_root(folder))
            undo.callback(os.close, roots[-1].folder)
        undo.callback(_roots.reset, _roots.set(roots))
        yield


def _opened_root(folder: Path) -> _Root:
    """A folder as it is now, by its path without links. Raises `InputError`."""
    path = Path(real_path(folder))
    try:
        opened = os.open(folder, BY_NAME)
        if os.path.samestat(os.fstat(opened), path.stat()):
            return _Root(str(path), opened)
        os.close(opened)
    except OSError as error:
        raise InputError(f"{folder} is no folder ({error.strerror}). Check the path.") from None
    raise InputError(f"{folder} was exchanged while it was opened. Try again.")


@contextmanager
def also_beneath(folder: Path) -> Iterator[None]:
    """Let files of a folder of our own be opened within, where not all may be."""
    if not (roots := _roots.get()):
        yield
        return
    with only_beneath(folder):
        _roots.set([*roots, *_roots.get()])  # taken back with the one folder
        yield


def is_bounded() -> bool:
    """Whether only some folders may be read."""
    return bool(_roots.get())


def check_beneath(path: Path) -> None:
    """Raise `OutsideRoot` for a name that leads elsewhere, whether anything is there or not."""
    if _roots.get():
        _root_and_way(path)


def is_beneath(path: Path) -> bool:
    """Whether a name may be opened as far as this is concerned."""
    try:
        check_beneath(path)
    except OutsideRoot:
        return False
    return True


def real_path(path: Path) -> str:
    """The path without links, never an error: of links in a circle one that cannot be opened.

    Where a link may not be read, as that of another process's root, its own path, which is not
    opened either.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)  # noqa: PTH100 - no link is to be read


def opened(path: Path) -> BufferedReader:
    """A file to be read. Raises `OSError`, and `OutsideRoot` for what may not be opened."""
    number = descriptor(path)
    try:
        return os.fdopen(number, "rb")
    except OSError:  # a folder
        os.close(number)
        raise


def descriptor(path: Path) -> int:
    """As `opened`, for those who read by its number; theirs to close."""
    if not _roots.get():
        return os.open(path, _FILE)
    root, names = _root_and_way(path)
    with ExitStack() as undo:
        at = root.folder
        for name in names[:-1]:
            at = os.open(name, BY_NAME | os.O_NOFOLLOW, dir_fd=at)
            undo.callback(os.close, at)
        return os.open(names[-1] if names else ".", _FILE | os.O_NOFOLLOW, dir_fd=at)


@contextmanager
def opens_only(path: Path) -> Iterator[None]:
    """A library opens this file by its name within. Raises `OutsideRoot` where it came by another
    one.
    """
    if not _roots.get():
        yield
        return
    with opened(path) as file:
        meant, was = _identity(file.fileno()), _open_files()
        yield
        if {file for number, file in _open_files().items() if was.get(number) != file} != {meant}:
            raise OutsideRoot(f"{path} was exchanged while it was opened. Try again.")


def _root_and_way(path: Path) -> tuple[_Root, list[str]]:
    """The root that a name leads to, and the folders and the file from there on."""
    real = real_path(path)
    for root in _roots.get():
        if real == root.path:
            return root, []
        if real.startswith(below := f"{root.path.rstrip('/')}/"):
            return root, real.removeprefix(below).split("/")
    raise OutsideRoot(
        f"{path} leads out of {_roots.get()[0].path}, the folder that may be read. Give a path "
        "inside it, or start moe-diag mcp --root FOLDER."
    )


def _identity(number: int) -> tuple[int, int] | None:
    """Which file is opened by a number; None where none is, or what is no file."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    if stat.S_ISREG(status.st_mode):
        return status.st_dev, status.st_ino
    return None


def _open_files() -> dict[int, tuple[int, int]]:
    numbers = map(int, os.listdir("/dev/fd"))  # noqa: PTH208 - names alone
    return {number: file_id for number in numbers if (file_id := _identity(number))}
