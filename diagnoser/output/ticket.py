"""What is attached to a perf ticket: a report in three formats, a picture, a manifest; all or nothing."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from diagnoser.output import as_bytes, check_place
from heuristics.result.compared import Compared
from heuristics.result.compared_files import ComparedFiles
from heuristics.result.layouts import Layouts
from heuristics.result.result import Result
from reports.content.blocks import Head
from reports.formats import FORMATS
from reports.result.codec import Document
from reports.result.json_text import render_json
from traces.errors import OutputNotWritable, UsageError
from traces.files.aside import aside, move_to_new, sweep

PAGES: Final = frozenset({"markdown", "jira"})
"""What the page of a ticket may be written in: a first screen, as the rest is attached."""
_FORMS: Final = ("html", "json", "png")
"""Of a ticket, beside its page in markdown or for Jira."""
_PICTURE: Final = "png"
_MANIFEST: Final = "_manifest.json"
_MADE: Final = "made"
_REPLACED: Final = "replaced"


Render = Callable[[str], str | bytes]
"""Name of a format -> the report in it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Where a ticket goes. `files`: name of a format -> name of its file."""

    folder: Path
    files: Mapping[str, str]
    manifest: str
    force: bool

    def head(self, form: str, head: Head) -> Head:
        """What stands over one of its files: its own page shows the picture beside it."""
        return replace(head, picture=self.files[_PICTURE]) if form in PAGES else head

    @property
    def names(self) -> list[str]:
        return [*self.files.values(), self.manifest]


def plan_ticket(folder: Path, base: str, page: str, force: bool) -> Ticket:
    """The names of a ticket's files, checked before any work. `page`: `markdown` or `jira`.

    Raises `UsageError` for an existing file without `force`, `OutputNotWritable` where there is no place.
    """
    files = {form: f"{base}_report.{FORMATS[form].extension}" for form in (page, *_FORMS)}
    ticket = Ticket(folder, files, f"{base}{_MANIFEST}", force)
    check_place(folder, "--ticket")
    sweep(folder.parent)
    sweep(folder, _put_back_unfinished)
    for name in ticket.names:
        if (folder / name).is_dir():
            raise UsageError(f"{folder / name} is a folder. Give another --ticket DIR.")
        if os.path.lexists(folder / name) and not force:
            raise _exists(folder / name)
    return ticket


def write_ticket(ticket: Ticket, result: Result | Compared | ComparedFiles | Layouts, render: Render) -> None:
    """Render everything, write it aside, and move it to its place: whole or not at all, whatever ends it.

    Raises `OutputNotWritable`, and `UsageError` for a file that has appeared meanwhile.
    """
    contents = {name: as_bytes(render(form)) for form, name in ticket.files.items()}
    for form in PAGES & {*ticket.files}:
        contents[ticket.files[form]] += as_bytes(f"\n{_attached(form, ticket)}")
    contents[ticket.manifest] = as_bytes(render_json(_manifest(result, contents)))
    is_new = not ticket.folder.exists()
    try:
        with aside(ticket.folder.parent if is_new else ticket.folder) as near:
            made = near / _MADE
            made.mkdir()
            for name, data in contents.items():
                (made / name).write_bytes(data)
            if is_new:
                made.rename(ticket.folder)
            else:
                _move(made, ticket, list(contents))
    except FileExistsError as error:
        raise _exists(Path(error.filename2 or error.filename)) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputNotWritable(
            f"{ticket.folder} cannot be written ({reason}). Give another --ticket DIR; nothing was left here."
        ) from None


def _attached(form: str, ticket: Ticket) -> str:
    from reports.write.github import GitHub
    from reports.write.jira import Jira
    from reports.write.markup import attached

    beside = [name for name in ticket.names if name != ticket.files[form]]
    return attached(Jira() if form == "jira" else GitHub(), beside)


def _move(made: Path, ticket: Ticket, names: Sequence[str]) -> None:
    """Move every file into a folder that is there, the manifest last; put all back if one fails."""
    kept = made.parent / _REPLACED
    kept.mkdir()
    numbers = _numbers(made)
    try:
        for name in names:
            place = ticket.folder / name
            if ticket.force and os.path.lexists(place):
                place.rename(kept / name)
            move_to_new(made / name, place)
    except BaseException:  # Ctrl-C as well
        _put_back(ticket.folder, numbers, kept)
        raise


def _put_back_unfinished(left: Path) -> None:
    """Put back what a run that was killed had moved, unless it had moved its manifest, and so all."""
    manifests = list((left / _MADE).glob(f"*{_MANIFEST}"))
    if manifests and all(one.stat().st_nlink == 1 for one in manifests):
        _put_back(left.parent, _numbers(left / _MADE), left / _REPLACED)


def _put_back(folder: Path, numbers: Mapping[str, int], kept: Path) -> None:
    """Take what was moved out of the folder again, the manifest first, and move back what it replaced."""
    for name in sorted(numbers, key=lambda name: not name.endswith(_MANIFEST)):
        place = folder / name
        if os.path.lexists(place) and place.lstat().st_ino == numbers[name]:
            place.unlink()
    for one in kept.iterdir() if kept.is_dir() else ():
        if not os.path.lexists(folder / one.name):
            one.rename(folder / one.name)


def _numbers(made: Path) -> dict[str, int]:
    """Which file each is, wherever it is moved: its inode."""
    return {one.name: one.stat().st_ino for one in made.iterdir()}


def _manifest(result: Result | Compared | ComparedFiles | Layouts, contents: Mapping[str, bytes]) -> Document:
    assert not isinstance(result, Layouts), "layouts have no ticket"
    runs = [result.base, result.new] if isinstance(result, Compared | ComparedFiles) else result.traces
    return {
        "tool": {"name": result.tool.name, "version": result.tool.version},
        "schema_version": result.schema_version,
        "runs": [one.name for one in runs],
        "redacted": result.redacted,
        "files": [
            {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in contents.items()
        ],
    }


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists. Give --force-overwrite to replace it, or another --ticket DIR.")
