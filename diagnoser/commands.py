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
    from diagnoser.side import Reading, Side, Source
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


def check_and_write(
    config: Path, symptoms: Path | None, log: Path | None, ask_megatron: bool, output: Output, given: Given
) -> bool:
    """Judge a configuration and write the results; gives whether it is legal."""
    from diagnoser.check import check_config
    from diagnoser.output import plan_targets
    from diagnoser.progress import progress_display
    from reports.render import CHECK_RENDERERS, EXTENSIONS

    inputs = [config, *(path for path in (log, symptoms) if path)]
    targets = plan_targets(output.forms, output.place, inputs, EXTENSIONS, output.force)
    ask = asker(ask_megatron)
    with progress_display() as progress:
        diagnosis = check_config(config, log=log, symptoms=symptoms, given=given, ask=ask, progress=progress)
    document = diagnosis.to_dict()
    write_all(document, targets, CHECK_RENDERERS, output)
    return bool(document["configuration"]["legal"])


def compare_and_write(
    base: Side, new: Side, reading: Reading, gate: str | None, output: Output
) -> str | None:
    """Compare two runs and write the results; gives why a gate is not passed, None where it is."""
    from diagnoser.comparison import compare_sides
    from diagnoser.gate import gate_frac
    from diagnoser.output import plan_targets
    from diagnoser.progress import progress_display
    from reports.comparison.render import COMPARISON_RENDERERS
    from reports.render import EXTENSIONS

    limit_frac = None if gate is None else gate_frac(gate)
    given = [path for side in (new, base) for path in (side.source, side.config, side.log)]
    inputs = [path for path in given if isinstance(path, Path)]
    targets = plan_targets(output.forms, output.place, inputs, EXTENSIONS, output.force, "_compared")
    with progress_display() as progress:
        result = compare_sides(base, new, reading, limit_frac, progress)
    write_all(result.to_dict(), targets, COMPARISON_RENDERERS, output)
    if result.gate is None or result.gate.state == "passed":
        return None
    return f"gate {gate} {result.gate.state}: {result.gate.because}"


def base_and_new(first: Path, second: Path | None, baseline: str | None) -> tuple[Source, Path]:
    """What is compared with what. Raises `UsageError` where one of the two is missing or given twice."""
    if baseline is None:
        if second is None:
            raise UsageError(
                f"{first} has nothing to be compared with. Type moe-diag compare BASE NEW, or "
                f"moe-diag compare --baseline NAME {first}"
            )
        return first, second
    if second is not None:
        raise UsageError(
            f"the base is given twice: as {first} and as --baseline {baseline}. "
            f"Type moe-diag compare {first} {second}, or moe-diag compare --baseline {baseline} {second}"
        )
    from diagnoser.history.baseline import baseline_document
    from diagnoser.side import named

    with named("base"):
        return baseline_document(baseline, None), first


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


def what_to_type(arguments: list[str]) -> str:
    """The help of the command that was meant; the whole line where only `analyze` was forgotten."""
    first = arguments[0] if arguments else ""
    if first in ("analyze", "check-config", "compare", "demo", "doctor", "explain", "history", "workload"):
        return f"Type moe-diag {first} --help."
    if Path(first).exists() or first.endswith((".nsys-rep", ".qdrep", ".sqlite", ".json", ".json.gz")):
        return f"Type moe-diag analyze {' '.join(arguments)}"
    return "Type moe-diag --help."
