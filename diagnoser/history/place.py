"""Where the history is kept, and whether a file is one."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from traces.errors import InputError, OutputNotWritable
from traces.files.plain_file import no_file

APPLICATION_ID: Final = 0x6D6F4844
"""In the header of every history file, so that no other SQLite file is taken for one: `moHD`."""

_MAGIC: Final = b"SQLite format 3\0"
_APPLICATION_ID_AT: Final = 68  # https://www.sqlite.org/fileformat.html, the database header
_HEADER_BYTES: Final = 100


class NotAHistory(InputError):
    """The file is no history of ours, is damaged, or is of a newer moe-diag."""


def history_file(given: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file given, else `$MOE_DIAG_HISTORY`, else the one in the user's data folder."""
    if given is not None:
        return given
    if named := environment.get("MOE_DIAG_HISTORY"):
        return Path(named)
    data = Path(environment.get("XDG_DATA_HOME") or "~/.local/share")
    if not data.is_absolute():  # as the XDG base directories say: a relative one is to be ignored
        data = Path("~/.local/share").expanduser()
    return data / "moe-diag" / "history.sqlite"


def make_folder(path: Path) -> None:
    """Make the folder of the history where it is our own; one that a user names has to be there."""
    if path != history_file(None):
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(path, os.strerror(error.errno or 0)) from None


def check_is_history(path: Path) -> bool:
    """Whether there is a history at `path`; False where nothing is there, or an empty file.

    Looks at the first bytes only, so that a file of another kind is never opened as a database. Raises
    `NotAHistory` for one, and `OutputNotWritable` for what cannot be read.
    """
    if what := no_file(path):
        raise unusable(path, f"it is {what}")
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(path, os.strerror(error.errno or 0)) from None
    if not header:
        return False
    told = header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    if not header.startswith(_MAGIC) or told != APPLICATION_ID.to_bytes(4, "big"):
        raise NotAHistory(
            f"{path} is no history of moe-diag. It is left as it is; give another --store FILE."
        )
    return True


def unusable(path: Path, reason: str) -> OutputNotWritable:
    """The error for a history that cannot be opened or written."""
    return OutputNotWritable(f"the history {path} cannot be used ({reason}). Give another with --store FILE.")
