"""`moe-diag compare`: the post-mortem of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.about import with_about
from diagnoser.bounds import with_bounds
from diagnoser.gate import gate_frac
from diagnoser.inputs import result_base
from diagnoser.options import (
    BaseConfig,
    BaseGpu,
    Baseline,
    BaseLog,
    BaseRun,
    CacheDir,
    Expectations,
    Force,
    Forms,
    Full,
    GateLimit,
    Jobs,
    Keys,
    MarkdownFlavor,
    NewConfig,
    NewGpu,
    NewLog,
    NewRun,
    NsysPath,
    NvtxPattern,
    OutputPlace,
    ReaderName,
    Redact,
    StepRange,
    TicketFolder,
)
from diagnoser.output import say
from diagnoser.progress import progress_display
from diagnoser.results import output_of, plan_results, write_results
from reports.write.formats import Kind
from traces.errors import UsageError
from traces.formats.readers import Reader

if TYPE_CHECKING:
    from diagnoser.side import Source
    from heuristics.result.compared import Gate


@with_bounds
@with_about
def compare(
    base: BaseRun,
    new: NewRun = None,
    gate: GateLimit = None,
    expect: Expectations = None,
    base_log: BaseLog = None,
    new_log: NewLog = None,
    base_config: BaseConfig = None,
    new_config: NewConfig = None,
    base_gpu: BaseGpu = None,
    new_gpu: NewGpu = None,
    baseline: Baseline = None,
    steps: StepRange = None,
    nvtx: NvtxPattern = None,
    form: Forms = None,
    flavor: MarkdownFlavor = None,
    output: OutputPlace = "-",
    ticket: TicketFolder = None,
    force_overwrite: Force = False,
    full: Full = False,
    keys: Keys = False,
    redact: Redact = True,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
    reader: ReaderName = Reader.AUTO,
    jobs: Jobs = None,
    about: dict[str, object] | None = None,
) -> int:
    """Is a run really slower than another, by how much, and why.

    Every difference is new less base, per step; rows add up to it. Without logs, 8 steps a side are needed.

    \b
    moe-diag compare before.nsys-rep after.nsys-rep
    moe-diag compare before.json after.nsys-rep              an earlier result: analyze -f json -o before.json
    moe-diag compare before.sqlite after.sqlite --base-log before.log --new-log after.log
    moe-diag compare before.sqlite after.sqlite --base-config before.yaml --new-config after.yaml
    moe-diag compare before/ after/                          all ranks of both runs
    moe-diag compare before.json after.sqlite --gate 3% -o why.html
    moe-diag compare --baseline main after.sqlite --expect com-3=6ms --ticket perf-1234

    The gate trips where new is slower by more than its limit, by the lower end of the 95 % interval. The
    results are written first. --steps, --nvtx and all about the run are for both sides. A fix that only the
    new run has is judged by what the plan of the base predicts for a step, or --expect.

    Exit code 0: compared, and the gate passed; 1: it tripped or is undecided; 2: usage; 3: a side, or what is
    given of it, is not readable; 4: a side has nothing to compare.
    """
    from diagnoser.comparison import compare_sides
    from diagnoser.expect import predictions
    from diagnoser.side import Reading, Side
    from traces.formats.open import ReadOptions
    from traces.steps.selection import parse_selection

    before, after = _base_and_new(base, new, baseline)
    limit_frac, expected = None if gate is None else gate_frac(gate), tuple(expect or ())
    base_side = Side("base", before, base_gpu, base_config, base_log, baseline)
    new_side = Side("new", after, new_gpu, new_config, new_log)
    typed = {"--gate": gate, "--expect": expected, "--steps": steps, "--nvtx": nvtx}
    chosen, options = parse_selection(steps, nvtx), ReadOptions(nsys, cache_dir, reader)
    reading = Reading(chosen, options, about or {}, redact, typed, jobs)
    want = output_of(form, output, force=force_overwrite, full=full, keys=keys, flavor=flavor, ticket=ticket)
    plan = plan_results(Kind.COMPARISON, want, [result_base([after]), *new_side.files()], base_side.files())
    with progress_display() as progress:
        result = compare_sides(base_side, new_side, reading, limit_frac, predictions(expected), progress)
    write_results(result.result, plan, want)
    return _exit_code(result.gate, gate)


def _exit_code(judged: Gate | None, typed: str | None) -> int:
    if judged is None or judged.state == "passed":
        return 0
    say(f"gate {typed} {judged.state}: {judged.because}")
    return 1


def _base_and_new(first: Path, second: Path | None, baseline: str | None) -> tuple[Source, Path]:
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
