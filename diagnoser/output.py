"""Where results go: stdout, or files that appear whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traces.errors import OutputNotWritable, UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """One format and where it goes; `path` is None for stdout."""

    form: str
    path: Path | None


def plan_targets(
    forms: Sequence[str],
    output: str,
    traces: Sequence[Path],
    extensions: Mapping[str, str],
    force: bool,
    ending: str = "_moe-diag",
) -> list[Target]:
    """Where each format goes, checked before any work.

    `output` is `-` (stdout), `.` (`<base><ending>.<ext>` beside the trace), a folder that exists, or a file.
    Raises `UsageError` for an existing file without `force`, for a trace itself even with it, and for several
    formats into one place.
    """
    trace, forms = traces[0], list(dict.fromkeys(forms))
    if output == "-":
        targets = [Target(form, None) for form in forms]
    elif output == "." or Path(output).is_dir() or output.endswith(os.sep):
        folder = trace.parent if output == "." else Path(output)
        targets = [Target(form, folder / f"{base_name(trace)}{ending}.{extensions[form]}") for form in forms]
    else:
        targets = [Target(form, Path(output)) for form in forms]
    if len(targets) > 1 and len({target.path for target in targets}) == 1:
        raise UsageError(f"several formats cannot all go to {output!r}. Give -o . or -o FOLDER/.")
    for target in targets:
        _check(target.path, traces, force)
    return targets


def base_name(trace: Path) -> str:
    """The trace's name without the extension of its format."""
    for extension in (".nsys-rep", ".qdrep", ".sqlite", ".sqlite3", ".db"):
        if trace.name.endswith(extension) and trace.name != extension:
            return trace.name[: -len(extension)]
    return trace.name


def write(target: Target, content: str | bytes, force: bool) -> None:
    """Put text, or a figure's bytes, where the target says.

    Raises `OutputNotWritable`; no file is left half written. Bytes need a path: a terminal shows none.
    """
    data = content.encode() if isinstance(content, str) else content
    where = target.path if target.path is not None else "standard output"
    try:
        if target.path is None:
            _print(data.decode())
        elif target.path.exists() and not target.path.is_file():
            target.path.write_bytes(data)  # a device or a pipe: never replaced by a file
        else:
            _write_whole(target.path, data, force)
    except FileExistsError:
        raise _exists(Path(where)) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputNotWritable(
            f"{where} cannot be written ({reason}). Give another place with -o."
        ) from None


def _write_whole(path: Path, data: bytes, force: bool) -> None:
    """Write beside the target, then move: a reader sees the old file or the whole new one."""
    handle, temporary = tempfile.mkstemp(prefix=".moe-diag-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        if force:
            Path(temporary).replace(path)
        else:
            _move_to_new(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _move_to_new(temporary: str, path: Path) -> None:
    """Move to a name that must not exist; raises FileExistsError where it has appeared meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name was checked before
        Path(temporary).replace(path)


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        _forget_stdout()
    except OSError:
        _forget_stdout()
        raise


def _forget_stdout() -> None:
    """Give the interpreter's own flush at exit a place to go."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check(path: Path | None, traces: Sequence[Path], force: bool) -> None:
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Give -o {path}/ to put the result in it.")
    if any(trace.exists() and path.exists() and path.samefile(trace) for trace in traces):
        raise UsageError(f"{path} is the trace itself, which is never changed. Give another place with -o.")
    if path.is_file() and not force:
        raise _exists(path)
    if not path.parent.is_dir():
        raise OutputNotWritable(f"{path.parent} is no folder. Create it, or give another place with -o.")


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists. Give --force-overwrite to replace it, or another place with -o.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
