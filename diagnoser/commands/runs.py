"""A run (`analyze`), a simulated one (`demo`), two (`compare`), a configuration alone
(`check-config`).
"""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import diagnoser
from diagnoser.options.command import command
from diagnoser.options.requests import (
    Analysis,
    Check,
    Comparison,
    FilesComparison,
    Source,
    path_of,
)
from diagnoser.output import say, say_skipped, show
from diagnoser.output.progress import progress_display
from diagnoser.output.results import Output, plan_results, write_results
from diagnoser.running.inputs.named import result_base, traces_named
from heuristics.result.exits import Exit
from reports.formats import ResultKind
from traces.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.diagnosis import ComparisonResult, FilesResult


@command()
def analyze(
    traces: list[Path],
    asked: partial[Analysis],
    wanted: partial[Output],
    summary: Path | None = None,
    facts: bool = True,
) -> int:
    """Diagnose a trace: which wall holds it back, what to try.

    Reads an Nsight Systems report (through your own nsys), an SQLite export of one, or the PyTorch
    profiler's JSON. Several files are ranks of one run. Never changes the input, never writes
    beside it unless asked. No network but to the scheduler that you name.

    \b
    moe-diag analyze run.nsys-rep                     the report, on stdout
    moe-diag analyze run.sqlite -o run.html           as a page
    moe-diag analyze ranks/                           every recording in a folder
    moe-diag analyze 'ranks/*.sqlite' --ranks map.csv
    moe-diag analyze run.sqlite --start 1.5s --end 2.5s
    moe-diag analyze run.sqlite -f markdown --flavor jira
    moe-diag analyze run.sqlite --nvtx 'train_step_\\d+' --steps 2:5
    moe-diag analyze run.sqlite --gpu-model H100 --ep 16 --core-version 0.16.1 --full
    moe-diag analyze run.sqlite --config run.yaml --log train.log
    moe-diag analyze run.sqlite --config train.sh --emit-config megatron-lm -o patch.sh
    moe-diag analyze run.sqlite --ticket perf-1234    all a perf ticket needs

    With --config, fixes that the configuration forbids are left out, and contradictions are listed.
    Results name no path, host, user or text of the configuration, unless --no-redact is given.
    """
    from diagnoser.running.inputs.facts import with_facts

    want, asked = wanted(), with_facts(asked, facts)
    files = traces_named(traces)
    beside = [asked.keywords[option] for option in ("config", "log", "ranks")]
    plan = plan_results(ResultKind.ANALYSIS, want, [result_base(traces[0]), *files], beside)
    if summary:
        from diagnoser.running.merging import check_folder, keep_summaries

        check_folder(summary, files, want.force_overwrite)
    with progress_display() as progress:
        diagnosis = diagnoser.analyze(traces, **asked.keywords, progress=progress)
    if summary:
        keep_summaries(summary, diagnosis.summaries, want.force_overwrite)
    write_results(diagnosis.result, plan)
    say_skipped(diagnosis.skipped)
    return Exit.DONE


@command(lacks=("ticket", "title", "note", "emit_config"))
def demo(
    wanted: partial[Output],
    scenario: str = "communication",
    keep: Path | None = None,
) -> int:
    """Diagnose a simulated run with a known wall.

    \b
    moe-diag demo                  expert all-to-all across nodes, nothing beside it
    moe-diag demo host_overhead    a host that launches too slowly
    moe-diag demo ranks            eight ranks, a slow node; --keep ranks/ keeps their recordings
    moe-diag demo list             all scenarios
    moe-diag demo -o demo.html     the page that analyze -o report.html makes
    """
    from diagnoser.demo import RECORDINGS, SEVERAL, unpack
    from diagnoser.options.requests import command_line
    from diagnoser.running.pipeline import diagnose

    if scenario == "list":
        show("".join(f"{name:<16}{about}\n" for name, about in RECORDINGS.items()))
        return Exit.DONE
    want = wanted()
    base = Path(scenario if scenario in SEVERAL else f"{scenario}.sqlite")
    plan = plan_results(ResultKind.ANALYSIS, want, [keep or base])
    with tempfile.TemporaryDirectory(prefix="moe-diag-") as folder:
        path = keep or Path(folder) / base
        unpack(path, scenario)
        about = {"world_size": SEVERAL[scenario]} if scenario in SEVERAL else None
        diagnosis = diagnose(
            Analysis(path, about=about), command_line("demo", [Path(scenario)], {})
        )
    write_results(diagnosis.result, plan)
    return Exit.DONE


@command(of=ResultKind.CONFIGURATION, lacks=("flavor", "ticket", "title", "note", "brief"))
def check_config(
    config: Path,
    asked: partial[Check],
    wanted: partial[Output],
    facts: bool = True,
) -> int:
    """Is a configuration legal, and what would make it faster.

    Needs no trace, and runs nothing of the file. Exit code 0: nothing refuses it; 1: illegal; 2:
    usage; 3: not readable. With --symptoms the walls are judged too, and a plan is made.

    \b
    moe-diag check-config run.yaml --core-version 0.16.1 --gpu-model H100
    moe-diag check-config train.sh --log train.log --full
    moe-diag check-config run.yaml --symptoms symptoms.json
    moe-diag check-config run.yaml --symptoms symptoms.json --emit-config bridge -o patch.yaml
    moe-diag check-config run.yaml -o checked.md

    Symptoms are measurements by the document's names: {"budget_frac": {"compute": 0.70,
    "exposed_comm": 0.26, "idle": 0.04}}; an earlier result (analyze -f json) serves as well.
    """
    from diagnoser.running.inputs.facts import with_facts

    want, asked = wanted(), with_facts(asked, facts, of_place=True)
    beside = [asked.keywords[option] for option in ("log", "symptoms")]
    plan = plan_results(ResultKind.CONFIGURATION, want, [config], beside)
    with progress_display() as progress:
        diagnosis = diagnoser.check_config(config, **asked.keywords, progress=progress)
    write_results(diagnosis.result, plan)
    configuration = diagnosis.result.configuration
    if configuration and configuration.legal is False:
        return Exit.NO
    return Exit.DONE


@command(lacks=("brief", "emit_config"))
def compare(
    comparison: partial[Comparison],
    wanted: partial[Output],
    base: Path | None = None,
    new: Path | None = None,
    baseline: str | None = None,
) -> int:
    """Is a run really slower than another, by how much, and why.

    Every difference is new less base, per step; rows add up to it. Without logs, 4 steps a side are
    needed, and 8 or more see smaller differences.

    \b
    moe-diag compare before.nsys-rep after.nsys-rep
    moe-diag compare before.json after.nsys-rep      before.json: analyze -f json -o before.json
    moe-diag compare before.sqlite after.sqlite --base-log before.log --new-log after.log
    moe-diag compare before.sqlite after.sqlite --base-config before.yaml --new-config after.yaml
    moe-diag compare before/ after/                  all ranks of both runs
    moe-diag compare before.json after.sqlite --more-base before2.json --more-base before3.json
    moe-diag compare before.json after.sqlite --gate 3% -o why.html
    moe-diag compare --baseline main after.sqlite --expect com-3=6ms --ticket perf-1234
    moe-diag compare before.yaml after.yaml --base-log before.log --new-log after.log
    moe-diag compare --base-log before.log --new-log after.log

    The gate trips where new is slower by more than its limit, by the lower end of the 95 %
    interval. What cannot be judged fails it, unless --undecided pass or --not-comparable pass. The
    results are written first. --steps, --nvtx and all about the run are for both sides. A fix that
    only the new run has is judged by what the plan of the base predicts for a step, or --expect.

    Exit code 0: slower, faster or no change; 5: undecided; 6: not comparable. With --gate instead
    0: it lets pass; 1: it does not. Always 2: usage; 3: a side, or what is given of it, is not
    readable; 4: a side has nothing to compare.
    """
    from diagnoser.running.comparison import check_comparison, compare_sides, sides_of
    from diagnoser.running.files_compared import asked_of_files

    # a baseline is a kept result: what is held against it is no configuration
    if baseline is None and (of_files := asked_of_files(base, new, comparison.keywords)):
        return _compare_files(of_files, wanted())
    before, after = _base_and_new(base, new, baseline)
    asked = comparison(before, after)
    check_comparison(asked)
    want, (first, second, *more) = wanted(), sides_of(asked)
    beside = first.files()
    for side in more:
        beside += side.files()
    plan = plan_results(ResultKind.COMPARISON, want, [result_base(after), *second.files()], beside)
    with progress_display() as progress:
        result = compare_sides(asked, baseline, progress)
    write_results(result.result, plan)
    return _ended(result, asked.gate)


def _compare_files(asked: FilesComparison, want: Output) -> int:
    from diagnoser.running.files_compared import compare_files

    given = map(path_of, (asked.new, asked.new_log, asked.base, asked.base_log))
    plan = plan_results(ResultKind.FILES, want, [*filter(None, given)])
    with progress_display() as progress:
        result = compare_files(replace(asked, progress=progress))
    write_results(result.result, plan)
    return _ended(result, asked.gate)


def _ended(compared: "ComparisonResult | FilesResult", limit: str | None) -> int:
    """The exit code, which is explained where it is not 0, or a gate is not passed."""
    code, gate, result = compared.exit_code, compared.gate, compared.result
    if gate and gate.state != "passed":
        say(f"gate {limit} {gate.state}: {gate.because}")
    elif code:
        say(f"{result.verdict.replace('_', ' ')} (exit code {code}): {result.because[0]}")
    return code


def _base_and_new(
    first: Path | None, second: Path | None, baseline: str | None
) -> tuple[Source, Path]:
    """What is compared with what. Raises `UsageError` where one of the two is missing or given
    twice.
    """
    if not first:
        raise UsageError(
            "nothing to compare: give two traces or two configurations. Type moe-diag compare "
            "--help"
        )
    if baseline is None:
        if not second:
            raise UsageError(
                f"{first} has nothing to be compared with. Type moe-diag compare BASE NEW, or "
                f"moe-diag compare --baseline NAME {first}"
            )
        return first, second
    if second:
        raise UsageError(
            f"the base is given twice: as {first} and as --baseline {baseline}. Type moe-diag "
            f"compare {first} {second}, or moe-diag compare --baseline {baseline} {second}"
        )
    from diagnoser.history.kept import baseline_document
    from diagnoser.running.comparison import named

    with named("base"):
        return baseline_document(baseline), first
