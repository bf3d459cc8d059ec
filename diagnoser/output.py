"""Where results go: stdout, or files that appear whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traces.errors import OutputNotWritable, UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """One format and where it goes; `path` is None for stdout."""

    form: str
    path: Path | None


def plan_targets(
    forms: Sequence[str], output: str, trace: Path, extensions: dict[str, str], force: bool
) -> list[Target]:
    """Where each format goes, checked before any work.

    `output` is `-` (stdout), `.` (`<base>_moe-diag.<ext>` beside the trace), a folder that exists, or a file.
    Raises `UsageError` for an existing file without `force` and for several formats into one place.
    """
    forms = list(dict.fromkeys(forms))
    if output == "-":
        targets = [Target(form, None) for form in forms]
    elif output == "." or Path(output).is_dir() or output.endswith(os.sep):
        folder = trace.parent if output == "." else Path(output)
        targets = [Target(form, folder / f"{base_name(trace)}_moe-diag.{extensions[form]}") for form in forms]
    else:
        targets = [Target(form, Path(output)) for form in forms]
    if len(targets) > 1 and len({target.path for target in targets}) == 1:
        raise UsageError(f"several formats cannot all go to {output!r}. Give -o . or -o FOLDER/.")
    for target in targets:
        _check(target.path, force)
    return targets


def base_name(trace: Path) -> str:
    """The trace's name without the extension of its format."""
    for extension in (".nsys-rep", ".qdrep", ".sqlite", ".sqlite3", ".db"):
        if trace.name.endswith(extension) and trace.name != extension:
            return trace.name[: -len(extension)]
    return trace.name


def write(target: Target, text: str, force: bool) -> None:
    """Put the text where the target says. Raises `OutputNotWritable`; nothing is left half written."""
    if target.path is None:
        _print(text)
        return
    try:
        handle, temporary = tempfile.mkstemp(prefix=".moe-diag-", dir=target.path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(temporary).chmod(0o666 & ~_umask())
            if force:
                Path(temporary).replace(target.path)
            else:
                os.link(temporary, target.path)  # fails where the file has appeared meanwhile
        finally:
            Path(temporary).unlink(missing_ok=True)
    except FileExistsError:
        raise _exists(target.path) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputNotWritable(
            f"{target.path} cannot be written ({reason}). Give another place with -o."
        ) from None


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except (
        BrokenPipeError
    ):  # the reader has seen enough; the interpreter's own flush at exit needs a place to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check(path: Path | None, force: bool) -> None:
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Give -o {path}/ to put the result in it.")
    if path.exists() and not force:
        raise _exists(path)
    if not path.parent.is_dir():
        raise OutputNotWritable(f"{path.parent} is no folder. Create it, or give another place with -o.")


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists. Give --force-overwrite to replace it, or another place with -o.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
