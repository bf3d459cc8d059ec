"""What is wrong where an exception is none of ours: the machine, a name that no file can have, or a
bug.
"""

import errno
import traceback
from pathlib import Path
from typing import Final

_OF_THE_MACHINE: Final = frozenset(
    {errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOSPC}
    | {errno.EPIPE, errno.EROFS, errno.ESTALE}
)
"""What a full or failing disk, a closed stream and a lost connection answer: no bug of ours."""


def not_ours(error: Exception) -> str | None:
    """What to say of an error of the machine or of a name; None for a bug of ours."""
    if not isinstance(error, OSError):
        return None
    if error.errno == errno.ENAMETOOLONG:
        return f"{error.filename} is too long for the name of a file. Check the path."
    if error.errno in _OF_THE_MACHINE:
        what = f"{error.filename or 'a file or the terminal'} cannot be read or written"
        return f"{what} ({error.strerror}). Check the disk, and where the output goes."
    return None


def place_of_bug(error: Exception) -> str:
    """The kind of error, the name of the file and the line: no text that it holds, no folder of
    anybody.
    """
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
