"""argv -> exit code. The only place that prints or exits.

Exit codes: 0 ran; 1 an illegal configuration (check-config), or a gate that tripped or is undecided
(compare), after the results are written; 2 usage; 3 input or environment; 4 read, but nothing to diagnose;
70 our bug; 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from diagnoser import __version__
from diagnoser.about import given_from, with_about
from diagnoser.commands import (
    Files,
    Output,
    base_and_new,
    check_and_write,
    compare_and_write,
    diagnose_and_write,
    renderer_names,
    what_to_type,
)
from diagnoser.history.commands import history_app
from diagnoser.options import (
    AskMegatron,
    BaseConfig,
    BaseGpu,
    Baseline,
    BaseLog,
    BaseRun,
    CacheDir,
    CheckForms,
    ConfigArgument,
    ConfigFile,
    DeviceNumber,
    EmitConfig,
    EndTime,
    Everything,
    Force,
    Form,
    Forms,
    GateLimit,
    LogFile,
    NewConfig,
    NewGpu,
    NewLog,
    NewRun,
    NsysPath,
    NvtxPattern,
    OneTrace,
    OutputPlace,
    RankNumber,
    StartTime,
    StepRange,
    SymptomsFile,
    Traces,
    Word,
)
from traces.errors import InputError, MoeDiagError, NothingToDiagnose, UsageError

if TYPE_CHECKING:
    from traces.formats.open import ReadOptions
    from traces.steps.selection import Selection

_EXIT_CODES: Final = {UsageError: 2, InputError: 3, NothingToDiagnose: 4}
_BUG, _INTERRUPTED = 70, 130

_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]
"""What the command line parser raises: click's ClickException, of which newer typers carry their own copy."""

app = typer.Typer(
    name="moe-diag",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.add_typer(history_app, name="history", help="Results kept over time: add, list, trend, baseline.")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moe-diag {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Say which wall holds a Mixture-of-Experts training run back, from its Nsight Systems trace.

    \b
    moe-diag analyze run.nsys-rep             the report, on stdout
    moe-diag analyze run.sqlite -f json       the same as a JSON document
    moe-diag doctor run.nsys-rep              is this recording good enough
    moe-diag compare before.json after.sqlite is it really slower, why, what changed
    moe-diag check-config run.yaml            is this configuration legal, what to try
    moe-diag explain COM-2                    what a fix, a wall or a measure means
    moe-diag demo                             simulate a run with a known wall and diagnose it
    """


@app.command()
@with_about
def analyze(
    traces: Traces,
    steps: StepRange = None,
    nvtx: NvtxPattern = None,
    start: StartTime = None,
    end: EndTime = None,
    rank: RankNumber = None,
    gpu: DeviceNumber = None,
    config: ConfigFile = None,
    log: LogFile = None,
    emit_config: EmitConfig = None,
    ask_megatron: AskMegatron = True,
    form: Forms = None,
    output: OutputPlace = "-",
    force_overwrite: Force = False,
    everything: Everything = False,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
    about: dict[str, object] | None = None,
) -> None:
    """Diagnose a trace: which wall holds the run back, where its steps go, what to try, what is not told.

    Reads an Nsight Systems report (through your own nsys), an SQLite export of one, or the PyTorch
    profiler's JSON. Never changes the input, never writes beside it unless asked, never opens the network.

    \b
    moe-diag analyze run.nsys-rep
    moe-diag analyze run.sqlite --steps 2:5
    moe-diag analyze run.sqlite --nvtx 'train_step_\\d+' -f json -o result.json
    moe-diag analyze run.sqlite --start 12.5s --end 13s
    moe-diag analyze run.sqlite --gpu-model H100 --ep 16 --core-version 0.16.1 --all
    moe-diag analyze run.sqlite --config run.yaml --log train.log
    moe-diag analyze run.sqlite --config train.sh --emit-config megatron-lm -o patch.sh

    With --config no fix is shown that the configuration forbids; what it contradicts, and numbers, are.
    """
    from traces.formats.open import ReadOptions
    from traces.steps.selection import parse_selection

    selection = parse_selection(steps, nvtx, start, end, rank, gpu)
    options = ReadOptions(nsys=nsys, cache_dir=cache_dir)
    output_to = Output(renderer_names(form, emit_config), output, force_overwrite, everything)
    files = Files(config, log, ask_megatron)
    _run(traces, selection, options, output_to, about, files)


@app.command("check-config")
@with_about
def check_config(
    config: ConfigArgument,
    symptoms: SymptomsFile = None,
    log: LogFile = None,
    emit_config: EmitConfig = None,
    ask_megatron: AskMegatron = True,
    form: CheckForms = None,
    output: OutputPlace = "-",
    force_overwrite: Force = False,
    everything: Everything = False,
    about: dict[str, object] | None = None,
) -> None:
    """Is a configuration legal for its versions, what does the workflow say of it, what to try.

    Needs no trace, and runs nothing of the file. Exit code 0: legal; 1: illegal; 2: usage; 3: not readable.
    With --symptoms the walls are judged too, and a plan is made.

    \b
    moe-diag check-config run.yaml --core-version 0.16.1 --gpu-model H100
    moe-diag check-config train.sh --log train.log --all
    moe-diag check-config run.yaml --symptoms symptoms.json
    moe-diag check-config run.yaml --symptoms symptoms.json --emit-config bridge -o patch.yaml

    Symptoms are measurements by the document's names: {"budget_frac": {"compute": 0.70,
    "exposed_comm": 0.26, "idle": 0.04}}; an earlier result (analyze -f json) serves as well.
    """
    output_to = Output(renderer_names(form, emit_config), output, force_overwrite, everything)
    if not check_and_write(config, symptoms, log, ask_megatron, output_to, given_from(about or {})):
        raise typer.Exit(1)


@app.command()
@with_about
def compare(
    base: BaseRun,
    new: NewRun = None,
    gate: GateLimit = None,
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
    output: OutputPlace = "-",
    force_overwrite: Force = False,
    everything: Everything = False,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
    about: dict[str, object] | None = None,
) -> None:
    """Did it really get slower, by how much, where, and what changed that can explain it.

    Every difference is new less base, per step, and the rows add up to it. Without logs, 8 steps a side are
    needed to tell a difference from chance. Logs of both runs give its size without the profiler.

    \b
    moe-diag compare before.nsys-rep after.nsys-rep
    moe-diag compare before.json after.nsys-rep              an earlier result: analyze -f json -o before.json
    moe-diag compare before.sqlite after.sqlite --base-log before.log --new-log after.log
    moe-diag compare before.sqlite after.sqlite --base-config before.yaml --new-config after.yaml
    moe-diag compare run.sqlite run.sqlite --base-gpu 0 --new-gpu 1
    moe-diag compare before.json after.sqlite --gate 3% -f markdown -o why.md
    moe-diag compare --baseline main after.sqlite --gate 3%

    The gate trips where new is slower by more than its limit, by the lower end of the 95 % interval. The
    results are written first. --steps, --nvtx and what is said about the run are for both sides.

    Exit code 0: compared, and the gate passed; 1: it tripped or is undecided; 2: usage; 3: a side, or what is
    given of it, is not readable; 4: a side has nothing to compare.
    """
    from diagnoser.side import Reading, Side
    from traces.formats.open import ReadOptions
    from traces.steps.selection import parse_selection

    before, after = base_and_new(base, new, baseline)
    failed = compare_and_write(
        Side("base", before, base_gpu, base_config, base_log),
        Side("new", after, new_gpu, new_config, new_log),
        Reading(parse_selection(steps, nvtx), ReadOptions(nsys, cache_dir), about or {}),
        gate,
        Output(renderer_names(form, None), output, force_overwrite, everything),
    )
    if failed:
        raise typer.Exit(_say(failed, 1))


@app.command()
def doctor(
    trace: OneTrace,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
) -> None:
    """Is this recording good enough: what it holds, what it lacks, how to record it better.

    Diagnoses nothing. Says what is missing and what that makes impossible, whether host and GPU clocks agree,
    what the profiler itself noted, and the line to record with next time.
    """
    from diagnoser.output import Target, write
    from diagnoser.progress import progress_display
    from reports.capture import render_capture
    from traces.formats.open import ReadOptions, read_trace
    from traces.measure.capture import measure_capture
    from traces.timeline import build

    with progress_display() as progress:
        columns = read_trace(trace, ReadOptions(nsys=nsys, cache_dir=cache_dir), progress)
        capture = measure_capture(columns, build(columns))
    write(Target("text", None), render_capture(columns.info, capture), force=False)


@app.command()
def explain(
    word: Word = "",
) -> None:
    """What a word of a report means: a wall, a fix (COM-2) or a measure (launch_starved)."""
    from diagnoser.output import Target, write
    from reports.explain import explain as explained

    write(Target("text", None), explained(word), force=False)


@app.command()
def workload(
    state: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="The known state to record.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", show_default=False, help="A name ending in .json.gz.")],
    steps: Annotated[int, typer.Option(metavar="N", help="Steps to record.")] = 6,
    device: Annotated[str, typer.Option(metavar="cuda|cpu", help="cpu records no kernels.")] = "cuda",
    megatron: Annotated[bool, typer.Option("--megatron", help="Megatron-Core's own MoE layer.")] = False,
) -> None:
    """Record a small real MoE training step in a known state (needs PyTorch, and a GPU for kernels).

    States: eager, cuda_graph, recompute, many_small_experts, few_large_experts, host_counts,
    copy_same_stream, copy_second_stream. The recording is scrubbed; a .known.json beside it says what was
    done.
    """
    from traces.simulate import workload as real

    said = real.workload(state, out, step_count=steps, device=device, megatron=megatron)
    typer.echo(said)


@app.command()
def demo(
    scenario: Annotated[
        str,
        typer.Argument(metavar="[SCENARIO]", show_default=False, help="The run to simulate; list: names."),
    ] = "communication",
    form: Forms = None,
    everything: Everything = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep the simulated export here, to analyze it yourself."),
    ] = None,
) -> None:
    """Simulate a run with a known wall, write it as an nsys export, and diagnose that export.

    \b
    moe-diag demo                  expert all-to-all across nodes, nothing beside it
    moe-diag demo host_overhead    a host that launches too slowly
    moe-diag demo list             all scenarios
    """
    import tempfile

    from diagnoser.scenarios import listed, simulate_to
    from traces.formats.open import ReadOptions
    from traces.steps.selection import Selection

    if scenario == "list":
        typer.echo(listed())
        return
    with tempfile.TemporaryDirectory(prefix="moe-diag-") as folder:
        path = keep or Path(folder) / f"{scenario}.sqlite"
        simulate_to(path, scenario)
        forms = [str(one) for one in form or [Form.TEXT]]
        _run([path], Selection(), ReadOptions(), Output(forms, "-", False, everything))


def _run(
    traces: list[Path],
    selection: Selection,
    options: ReadOptions,
    output: Output,
    about: dict[str, object] | None = None,
    files: Files | None = None,
) -> None:
    for reason in diagnose_and_write(traces, selection, options, output, given_from(about or {}), files):
        _say(f"skipped: {reason}", 0)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line, print what it says, and return the exit code."""
    try:
        result = app(arguments, standalone_mode=False, prog_name="moe-diag")
        if result == _INTERRUPTED:  # the parser's own answer to Ctrl-C
            return _say("interrupted; nothing was left behind.", _INTERRUPTED)
        return result if isinstance(result, int) else 0
    except MoeDiagError as error:
        return _say(str(error), next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)))
    except _WrongUsage as error:
        message = str(getattr(error, "format_message", error.__str__)())
        if "\n" in message:  # the whole help, where no command was given
            print(message, file=sys.stderr)
            return 2
        return _say(f"{message.rstrip('.')}. {what_to_type(arguments)}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted; nothing was left behind.", _INTERRUPTED)
    except Exception as error:
        if "MOE_DIAG_TRACEBACK" in os.environ:
            traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return _say(
            f"a bug of ours ({type(error).__name__} at {where}). Please report it with what the same command "
            "prints under MOE_DIAG_TRACEBACK=1.",
            _BUG,
        )


def _say(message: str, code: int) -> int:
    print("moe-diag: " + " ".join(message.split()), file=sys.stderr)
    return code
