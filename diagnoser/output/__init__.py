"""Where results go: stdout, or files that appear whole or not at all. Notes go to stderr."""

import errno
import json
import os
import shlex
import shutil
import stat
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from reports.content.page import SCREEN, Page, View
from reports.formats import FORMATS, as_bytes
from reports.rows import each
from traces.errors import OutputNotWritable, UsageError, reason_of
from traces.files.aside import sweep, write_whole
from traces.frozen import frozen
from traces.names.file_names import told_path
from traces.patterns import compiled
from traces.spelling import one_line

_ENDINGS: Final = ("_moe-diag", "_compared", "_report")
"""What the names of our own results end with, so that a report of one is not named twice."""
_COLOURED: Final = "text"
"""The one format that is written with colours."""
_COLOUR: Final = compiled(r"(\x1b\[[0-9;]*m)")
"""What switches a colour and moves no cursor."""
_NARROW, _WIDE = 40, 200
_PROMPT: Final = 2
"""Rows of a terminal that the next prompt takes, and the line that was typed."""


@frozen
class Target:
    """One format and where it goes; `path` is None for stdout.

    `is_named`: the user gave this very path, so that a device or a pipe there is meant.
    """

    form: str
    path: Path | None = None
    is_named: bool = False


def plan_targets(
    forms: Sequence[str],
    output: str,
    traces: Sequence[Path],
    force: bool,
    ending: str,
) -> list[Target]:
    """Where each format goes, checked before any work.

    `output` is `-` (stdout), `.` (`<base><ending>.<ext>` beside the trace), a folder that exists,
    or a file. Raises `UsageError` for an existing file without `force`, for a trace itself even
    with it, for several formats into one place, and for a binary format on stdout.
    """
    trace, forms = traces[0], list(dict.fromkeys(forms))
    if output == "-" and (shown := [form for form in forms if FORMATS[form].binary]):
        name = f"{base_name(trace)}{ending}.{FORMATS[shown[0]].extension}"
        kind = "are no texts" if len(shown) > 1 else "is no text"
        place = f"-o {shlex.quote(name)}" if len(forms) == 1 else "-o FOLDER/"
        raise UsageError(
            f"{' and '.join(shown)} {kind} for a terminal. Type the same line with {place}, "
            "or with -o . to put it beside the input."
        )
    folder = trace.parent if output == "." else Path(output)
    is_folder, targets = folder.is_dir() or output.endswith(os.sep) or output == ".", []
    for form in forms:
        target = Target(form, folder, is_named=True)
        if output == "-":
            target = Target(form)
        elif is_folder:
            name = f"{base_name(trace)}{ending}.{FORMATS[form].extension}"
            target = Target(form, folder / name)
        targets.append(target)
    if len(targets) > 1 and len({*each(targets, "path")}) == 1:
        raise UsageError(f"several formats cannot all go to {output!r}. Give -o . or -o FOLDER/.")
    folders = set()
    for target in targets:
        if target.path:
            _check(target.path, traces, force or (target.is_named and _is_special(target.path)))
            folders.add(target.path.parent)
    for folder in folders:
        sweep(folder)
    return targets


def base_name(trace: Path) -> str:
    """The name of a trace or a result as it may be told, without the extension of its format and
    what ours end with.
    """
    told_name = told_path(trace)
    name = _without(told_name, (".nsys-rep", ".qdrep", ".sqlite", ".sqlite3", ".db"))
    if name != told_name:
        return name
    name = _without(told_name, (".json", ".json.gz"))
    if name == told_name:
        return name
    return _without(name, _ENDINGS)


def _without(name: str, ends: Sequence[str]) -> str:
    """A name without the first of these that it ends with, and is not as a whole."""
    for end in ends:
        if name.endswith(end) and name != end:
            return name.removesuffix(end)
    return name


def screen() -> View:
    """How much room standard output has: a terminal's width, height and colours, else 80 plain
    columns.

    `NO_COLOR` and `TERM=dumb` are kept to.
    """
    if not sys.stdout.isatty():
        return View()
    columns, rows = shutil.get_terminal_size()
    width, rows = max(_NARROW, min(columns, _WIDE)), max(SCREEN, rows - _PROMPT)
    return View(
        width, rows, colour="NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    )


def say(message: str) -> None:
    with suppress(OSError):  # nobody listens, or the terminal went away
        print(f"moe-diag: {one_line(message)}", file=sys.stderr, flush=True)


def say_skipped(reasons: Sequence[str]) -> None:
    for reason in reasons:
        say(f"skipped: {reason}")


def show(text: str) -> None:
    write(Target("text"), text, force=False)


def show_page(page: Page, view: View | None = None) -> None:
    """On stdout, by default as wide and coloured as it can be."""
    from reports.write.text import write_text

    show(write_text(page, view or screen()))


def write(target: Target, content: str | bytes, force: bool) -> None:
    """Put text, or a figure's bytes, where the target says.

    Raises `OutputNotWritable`; no file is left half written. Bytes need a path: a terminal shows
    none.
    """
    data = as_bytes(content)
    with writing(target.path or "standard output", "-o"):
        if not target.path:
            _print(data.decode(), target.form)
        elif target.is_named and _is_special(target.path):
            _write_through(target.path, data)  # never replaced by a file
        else:
            write_whole(target.path, data, force)


@contextmanager
def writing(where: Path | str, option: str) -> Iterator[None]:
    """What the system says of a place for results, in one line. `option`: what gives another."""
    try:
        yield
    except FileExistsError:
        raise _exists(where, option) from None
    except OSError as error:
        raise OutputNotWritable(
            f"{where} cannot be written ({reason_of(error)}). Give another place with {option}."
        ) from None


def _is_special(path: Path) -> bool:
    """Whether a device or a pipe was named itself, such as /dev/stdout; what a link leads to was
    not.
    """
    is_named = not path.is_symlink() or path.is_relative_to("/dev")
    return is_named and path.exists() and not path.is_file()


def _write_through(path: Path, data: bytes) -> None:
    """Write to a device or a pipe; to nothing else, whatever has come to stand there meanwhile."""
    no_link = 0 if path.is_relative_to("/dev") else os.O_NOFOLLOW
    with os.fdopen(os.open(path, os.O_WRONLY | no_link), "wb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        file.write(data)


def _print(text: str, form: str) -> None:
    """To a terminal only what moves no cursor; where a program reads, its own encoding stays
    whole.
    """
    is_screen = sys.stdout.isatty()
    if is_screen:
        # the text writer takes control characters out of foreign names: every colour left is its
        # own
        pieces = _COLOUR.split(text) if form == _COLOURED else [text]
        pieces[::2] = map(_harmless, pieces[::2])
        text = "".join(pieces)
    try:
        if is_screen or form in {"text", "markdown", "jira"}:
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    except OSError as error:
        # the interpreter's own flush at exit gets a place to go
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else the reader has seen enough
            raise


def _harmless(text: str) -> str:
    """Control characters and turned reading as escapes, as JSON writes them too."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf")
        else json.dumps(char)[1:-1]
        for char in text
    )


def _check(path: Path, traces: Sequence[Path], force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Give -o {path}/ to put the result in it.")
    if any(trace.exists() and path.exists() and path.samefile(trace) for trace in traces):
        raise UsageError(
            f"{path} is the input itself, which is never changed. Give another place with -o."
        )
    if os.path.lexists(path) and not force:
        raise _exists(path)
    if not path.parent.is_dir():
        raise OutputNotWritable(
            f"{path.parent} is no folder. Create it, or give another place with -o."
        )


def check_place(folder: Path, option: str) -> None:
    """Raise an error for a place that is no folder and can be none, and for a link, which is not
    followed.

    `option`: what the user named it with.
    """
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link. Name the folder that it leads to with {option}.")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder. Give another place with {option}.")
    if not folder.is_dir() and not folder.resolve().parent.is_dir():
        raise OutputNotWritable(
            f"{folder.parent} is no folder. Create it, or give another place with {option}."
        )


def _exists(path: Path | str, option: str = "-o") -> UsageError:
    return UsageError(
        f"{path} exists. Give --force-overwrite to replace it, or another place with {option}."
    )
