"""Recordings of simulated runs with a known wall, or a known late node, which come with the
program.

Each is an export of nsys in SQLite, compressed. What made them is no part of the program: a test
makes them again and compares.
"""

from pathlib import Path
from typing import Final

from reports.measures import words_of
from traces.errors import OutputNotWritable, UsageError
from traces.files.aside import appearing, write_whole
from traces.nearest import nearest

RECORDINGS: Final = words_of("demo")
"""What each run has, by its name."""
SEVERAL: Final = {"ranks": 8}
"""Runs of several recordings, and how many ranks each has."""


def compressed(name: str) -> Path:
    ending = "tar.xz" if name in SEVERAL else "sqlite.xz"
    return Path(__file__).with_name("recordings") / f"{name}.{ending}"


def unpack(path: Path, name: str) -> None:
    """Put a recording at `path`, of several ranks a folder of them.

    Raises `UsageError` for a recording that is not there and for an existing file,
    `OutputNotWritable` where the file cannot be written.
    """
    import lzma

    if name not in RECORDINGS:
        near = nearest(name, RECORDINGS) or "communication"
        raise UsageError(
            f"no scenario {name!r}. The nearest is {near}; moe-diag demo list shows all."
        )
    if not path.parent.is_dir():
        raise OutputNotWritable(
            f"{path.parent} is no folder. Create it, or give another place with --keep."
        )
    try:
        if path.exists():
            raise FileExistsError
        data = lzma.decompress(compressed(name).read_bytes())
        if name in SEVERAL:
            _unpack_folder(path, data)
        else:
            write_whole(path, data, replace=False)
    except FileExistsError:
        raise UsageError(f"{path} exists. Give another place with --keep.") from None
    except OSError as error:
        raise OutputNotWritable(
            f"{path} cannot be written ({error.strerror}). Give another place with --keep."
        ) from None


def _unpack_folder(folder: Path, data: bytes) -> None:
    """The files of an archive in a new folder. Raises OSError where that cannot be."""
    import tarfile
    from io import BytesIO

    with appearing(folder) as made, tarfile.open(fileobj=BytesIO(data)) as archive:
        for member in archive.getmembers():
            if file := archive.extractfile(member):
                made.write_new(Path(member.name).name, file.read())
