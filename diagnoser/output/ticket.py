"""What is attached to a perf ticket: a report in three formats, a picture, a manifest; all or
nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from diagnoser.output import check_place
from heuristics.result.compared import Compared
from heuristics.result.compared_files import ComparedFiles
from heuristics.result.result import Result
from reports.content.page import Head
from reports.formats import FORMATS, as_bytes
from reports.result.codec import Document
from reports.result.json_text import render_json
from reports.rows import each
from traces.errors import OutputNotWritable, UsageError, reason_of
from traces.files.aside import appearing, aside, sweep
from traces.files.folder import Folder, open_folder
from traces.files.moved import MADE, NotPutBack, move_together
from traces.frozen import frozen

if TYPE_CHECKING:
    from reports.formats import Whole

PAGES: Final = frozenset({"markdown", "jira"})
"""What the page of a ticket may be written in: a first screen, as the rest is attached."""
_FORMS: Final = ("html", "json", "png")
"""Of a ticket, beside its page in markdown or for Jira."""


Render = Callable[[str], str | bytes]
"""Name of a format -> the report in it."""


@frozen
class Ticket:
    """Where a ticket goes. `files`: name of a format -> name of its file."""

    folder: Path
    files: Mapping[str, str]
    manifest: str
    force: bool

    def head(self, form: str, head: Head) -> Head:
        """What stands over one of its files: its own page shows the picture beside it."""
        if form in PAGES:
            return replace(head, picture=self.files["png"])
        return head

    @property
    def names(self) -> list[str]:
        return [*self.files.values(), self.manifest]


def plan_ticket(folder: Path, base: str, page: str, force: bool) -> Ticket:
    """The names of a ticket's files, checked before any work. `page`: `markdown` or `jira`.

    Raises `UsageError` for an existing file without `force`, `OutputNotWritable` where there is no
    place.
    """
    files = {form: f"{base}_report.{FORMATS[form].extension}" for form in (page, *_FORMS)}
    ticket = Ticket(folder, files, f"{base}_manifest.json", force)
    check_place(folder, "--ticket")
    for place in (folder.parent, folder):
        sweep(place)
    for name in ticket.names:
        if (folder / name).is_dir():
            raise UsageError(f"{folder / name} is a folder. Give another --ticket DIR.")
        if os.path.lexists(folder / name) and not force:
            raise _exists(folder / name)
    return ticket


def write_ticket(ticket: Ticket, result: Whole, render: Render) -> None:
    """Render everything, write it aside, and move it to its place: whole or not at all, whatever
    ends it.

    Raises `OutputNotWritable`, and `UsageError` for a file that has appeared meanwhile.
    """
    contents = {}
    for form, name in ticket.files.items():
        contents[name] = as_bytes(render(form))
        if form in PAGES:
            contents[name] += as_bytes(f"\n{_attached(form, ticket)}")
    contents[ticket.manifest] = as_bytes(render_json(_manifest(result, contents)))
    try:
        _put(ticket, contents)
    except FileExistsError as error:
        raise _exists(ticket.folder / Path(error.filename2 or error.filename).name) from None
    except NotPutBack as error:
        raise OutputNotWritable(
            f"{ticket.folder} cannot be written, and what it replaced cannot go back: it is in "
            f"{error}. Move it back by hand."
        ) from None
    except OSError as error:
        raise OutputNotWritable(
            f"{ticket.folder} cannot be written ({reason_of(error)}). Give another --ticket DIR; "
            f"nothing was left here."
        ) from None


def _put(ticket: Ticket, contents: Mapping[str, bytes]) -> None:
    """Into a folder that appears with them, or one that is there, the manifest last."""
    if not os.path.lexists(ticket.folder):
        with appearing(ticket.folder) as made:
            _write(made, contents)
        return
    with open_folder(ticket.folder, follow=False) as place, aside(place) as own:
        own.new_folder(MADE, 0o700)
        with own.inner(MADE) as made:
            _write(made, contents)
        move_together(own, place, list(contents), ticket.force)


def _write(made: Folder, contents: Mapping[str, bytes]) -> None:
    for name, data in contents.items():
        made.write_new(name, data)


def _attached(form: str, ticket: Ticket) -> str:
    from reports.write.github import GitHub
    from reports.write.jira import Jira
    from reports.write.markup import attached

    beside = [name for name in ticket.names if name != ticket.files[form]]
    return attached(Jira() if form == "jira" else GitHub(), beside)


def _manifest(result: Whole, contents: Mapping[str, bytes]) -> Document:
    assert isinstance(result, Compared | ComparedFiles | Result), (
        "layouts and merged ranks have no ticket"
    )
    runs = result.traces if isinstance(result, Result) else (result.base, result.new)
    return {
        "tool": {"name": result.tool.name, "version": result.tool.version},
        "schema_version": result.schema_version,
        "runs": each(runs, "name"),
        "redacted": result.redacted,
        "files": [
            {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in contents.items()
        ],
    }


def _exists(path: Path) -> UsageError:
    return UsageError(
        f"{path} exists. Give --force-overwrite to replace it, or another --ticket DIR."
    )
