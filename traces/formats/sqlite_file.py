"""An SQLite file before it is opened: is it whole, and is nobody writing it."""

from pathlib import Path
from typing import Final

from traces.errors import DamagedTrace

MAGIC: Final = b"SQLite format 3\0"

_SIDE_FILES: Final = {
    "-wal": "changes not yet merged into it",
    "-journal": "an unfinished change",
}


def check_whole(path: Path) -> None:
    """Raise `DamagedTrace` where the file is shorter than its header says, or is being written.

    The header fields are those of the SQLite file format: page size at byte 16 (1 means 65536), change
    counter at 24, page count at 28, valid where the counter at 92 agrees.
    """
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    if len(header) < 100:
        raise DamagedTrace(f"{path} is truncated: {size} bytes of an SQLite file. Export the report again.")
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    page_count = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and size < page_size * page_count:
        raise DamagedTrace(
            f"{path} is truncated: {size} of {page_size * page_count} bytes. "
            "Copy it again, or export the report again."
        )
    for suffix, what in _SIDE_FILES.items():
        target = path.resolve()  # SQLite keeps them beside the file itself, not beside a link to it
        side = target.with_name(target.name + suffix)
        if side.is_file() and side.stat().st_size:
            raise DamagedTrace(
                f"{path} has {what} in {side.name} beside it. "
                "Let the program that writes it finish, or export the report again."
            )
