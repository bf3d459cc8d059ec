"""What several commands do alike: read the files, diagnose, render, write. Nothing here prints or exits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traces.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from diagnoser.output import Target
    from heuristics.asked import Ask
    from heuristics.run import Given
    from reports.document import Document
    from reports.render import Renderer
    from traces.formats.open import ReadOptions
    from traces.steps.selection import Selection


@dataclass(frozen=True, slots=True)
class Output:
    """Names of renderers, where their texts go, and whether everything is shown."""

    forms: list[str]
    place: str
    force: bool
    everything: bool


@dataclass(frozen=True, slots=True)
class Files:
    """What is given beside a trace, and whether megatron-core is asked about it."""

    config: Path | None = None
    log: Path | None = None
    ask_megatron: bool = False


def diagnose_and_write(
    traces: list[Path],
    selection: Selection,
    options: ReadOptions,
    output: Output,
    given: Given,
    files: Files | None = None,
) -> tuple[str, ...]:
    """Diagnose traces and write the results; gives why traces beside them were skipped."""
    from diagnoser.configuration import read_configured
    from diagnoser.output import plan_targets
    from diagnoser.pipeline import diagnose
    from diagnoser.progress import progress_display
    from reports.render import EXTENSIONS, RENDERERS

    files = files or Files()
    inputs = [*traces, *(path for path in (files.config, files.log) if path)]
    targets = plan_targets(output.forms, output.place, inputs, EXTENSIONS, output.force)
    with progress_display() as progress:
        configured = read_configured(files.config, files.log, given, progress)
        diagnosis = diagnose(
            traces,
            selection=selection,
            options=options,
            given=given,
            configured=configured,
            ask=asker(files.ask_megatron and configured.told),
            progress=progress,
        )
    write_all(diagnosis.to_dict(), targets, RENDERERS, output)
    return diagnosis.skipped


def write_all(
    document: Document, targets: Sequence[Target], renderers: Mapping[str, Renderer], output: Output
) -> None:
    """Render and write every target."""
    from diagnoser.output import write

    for target in targets:
        write(target, renderers[target.form](document, output.everything), output.force)


def renderer_names(forms: Sequence[str] | None, emit_config: str | None) -> list[str]:
    """The formats asked for, or the patch in their place. Raises `UsageError` for both, or no such patch."""
    if emit_config is None:
        return [str(one) for one in forms or ["text"]]
    from reports.emit import FRAMEWORKS

    if emit_config not in FRAMEWORKS:
        raise UsageError(f"--emit-config {emit_config!r} is not known. Give {' or '.join(FRAMEWORKS)}.")
    if forms:
        raise UsageError("--emit-config prints a patch instead of a report. Leave out -f, or run twice.")
    return [emit_config]


def asker(wanted: bool) -> Ask | None:
    """Asks megatron-core, where that is wanted."""
    if not wanted:
        return None
    from diagnoser.megatron.check import check_with_megatron

    return check_with_megatron
