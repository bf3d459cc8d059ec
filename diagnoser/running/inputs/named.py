"""What a command line names -> files: folders and patterns become the recordings, or summaries, in
them.
"""

import glob
import gzip
import os
import shlex
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from reports.rows import each
from traces.errors import TraceNotFound, UsageError
from traces.files.beneath import is_beneath, opened, real_path

REPORTS: Final = (".nsys-rep", ".qdrep")
EXPORTS: Final = (".sqlite",)
_KINETO: Final = (".json", ".json.gz")
_HEAD: Final = 1 << 16
"""Bytes of a JSON file in which a recording of the PyTorch profiler says what it is."""
_OURS: Final = b'"otherData":{"name":"moe-diag"'
"""In what `-f perfetto` wrote, which has the form of a recording."""
_OF_KINETO: Final = (b'"traceEvents"', b'"deviceProperties"', b'"distributedInfo"')

Inside = Callable[[Path], list[Path]]
"""The files of a folder that are wanted."""


def traces_named(given: Sequence[Path]) -> list[Path]:
    """The recordings that files, folders and patterns name, each once; those of a folder by name.

    Raises `UsageError` where nothing is given or a file is named twice, `TraceNotFound` for a
    folder without recordings and for a pattern that matches nothing.
    """
    if not given:
        raise UsageError("no trace given. Name one: moe-diag analyze run.nsys-rep")
    return files_named(given, recordings_in, _no_recordings)


def result_base(first: Path) -> Path:
    if first.is_dir():
        return Path(real_path(first))
    if first.exists():
        return first
    return traces_named([first])[0]


def files_named(
    given: Sequence[Path], inside: Inside, nothing: Callable[[Path], str]
) -> list[Path]:
    """Files as they are, of folders those `inside`, of patterns all that match.

    Raises `UsageError` for a file that is named twice itself, `TraceNotFound` for what has no
    files, of a folder with the words of `nothing`.
    """
    by_real_path = {}
    typed = dict[str, Path]()
    for path in given:
        if path.is_dir():
            home = real_path(path)  # of thousands of files, none is looked up again
            for file in _of_folder(path, inside, nothing):
                by_real_path[f"{home}/{file.name}"] = file
            continue
        matching = _matching(path, inside)
        if matching is None:
            if (first := typed.setdefault(real_path(path), path)) is not path:
                raise UsageError(
                    f"{path} is given twice (also as {first}), and would count twice. Name it once."
                )
            matching = [path]
        for file in matching:
            by_real_path.setdefault(real_path(file), file)
    return list(by_real_path.values())


def entries_in(folder: Path, *endings: str) -> list[Path]:
    """What in a folder has a name with one of these ends, by name; hidden ones are left out.

    Raises `TraceNotFound` for a link that leads out of the folder: whoever made the folder chose
    where to, and only what the user names is read. `OSError` where the folder cannot be read.
    """
    with os.scandir(folder) as listed:  # which knows links without a look at each
        entries = [
            entry
            for entry in listed
            if entry.name.endswith(endings) and not entry.name.startswith(".")
        ]
    entries.sort(key=lambda entry: entry.name)
    for linked in entries:
        if linked.is_symlink() and not is_within(Path(linked.path), folder):
            pattern = folder / f"*{next(filter(linked.name.endswith, endings))}"
            raise TraceNotFound(
                f"{linked.path} is a link out of its folder, which is not followed there. If it is "
                f"yours, name the files themselves: {shlex.quote(str(pattern))}"
            )
    return [*map(folder.joinpath, each(entries, "name"))]


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path leads, by all its links, to what is in a folder."""
    try:
        return Path(real_path(path)).is_relative_to(real_path(folder))
    except ValueError:  # what can be no path
        return False


def recordings_in(folder: Path) -> list[Path]:
    """The recordings of a folder by name; an export beside its report is the same recording, and is
    read.

    Raises as `entries_in`.
    """
    files = [*filter(Path.is_file, entries_in(folder, *REPORTS, *EXPORTS, *_KINETO))]
    reports = {_stem(path): path for path in files if path.name.endswith(REPORTS)}
    left_out = set()
    for path in files:
        if path.name.endswith(_KINETO):
            if not _is_kineto(path):
                left_out.add(path)
        elif path.name.endswith(EXPORTS) and (report := reports.get(_stem(path))):
            left_out.add(min(report, path, key=lambda recording: recording.stat().st_mtime_ns))
    return [file for file in files if file not in left_out]


def _of_folder(folder: Path, inside: Inside, nothing: Callable[[Path], str]) -> list[Path]:
    try:
        entries = inside(folder)
    except OSError as error:
        raise TraceNotFound(
            f"{folder} cannot be read ({error.strerror}). Check its permissions."
        ) from None
    if not entries:
        raise TraceNotFound(nothing(folder))
    return entries


def _matching(path: Path, inside: Inside) -> list[Path] | None:
    """The files that a pattern stands for; None for what is one file, there or not."""
    if path.exists() or not glob.has_magic(str(path)):
        return None
    matched = glob.glob(str(path), recursive=True)  # noqa: PTH207 - a pattern of any folder
    files = []
    for match in filter(is_beneath, map(Path, sorted(matched))):
        files += inside(match) if match.is_dir() else [match]
    if not files:
        raise TraceNotFound(f"{path} matches no file. Check the pattern, or name the folder.")
    return files


def _no_recordings(folder: Path) -> str:
    kinds = ", ".join((*REPORTS, *EXPORTS))
    deeper = any(entry.is_dir() and recordings_in(entry) for entry in sorted(folder.iterdir()))
    cure = (
        f"Type moe-diag analyze '{folder}/*'"
        if deeper
        else "Name the folder that the profiler wrote to."
    )
    return f"{folder} has no recordings ({kinds}, or .json of the PyTorch profiler). {cure}"


def _stem(path: Path) -> str:
    return path.name.removesuffix(next(filter(path.name.endswith, (*REPORTS, *EXPORTS))))


def _is_kineto(path: Path) -> bool:
    """Whether a JSON file is a recording; a result, a configuration or a list of other things is
    none.
    """
    try:
        with opened(path) as file:
            packed = file.peek(2).startswith(b"\x1f\x8b")
            head = (gzip.GzipFile(fileobj=file) if packed else file).read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return True  # named later, with the reason
    return _OURS not in head and any(mark in head for mark in _OF_KINETO)
