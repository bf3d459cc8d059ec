"""`moe-diag analyze`: one run."""

from typing import Final

import diagnoser
from diagnoser.about import with_about
from diagnoser.bounds import with_bounds
from diagnoser.emitted import or_patch
from diagnoser.inputs import result_base, traces_named
from diagnoser.options import (
    AskMegatron,
    Brief,
    CacheDir,
    ConfigFile,
    DeviceNumber,
    EmitConfig,
    EndTime,
    Force,
    Forms,
    Full,
    Jobs,
    Keys,
    LogFile,
    MarkdownFlavor,
    NsysPath,
    NvtxPattern,
    OutputPlace,
    RankMap,
    RankNumber,
    ReaderName,
    Redact,
    SchedulerAddress,
    StartTime,
    StepRange,
    SummaryFolder,
    TicketFolder,
    Traces,
)
from diagnoser.output import say_skipped
from diagnoser.progress import progress_display
from diagnoser.results import output_of, plan_results, write_results
from diagnoser.summaries import check_folder, keep_summaries
from reports.write.formats import Kind
from traces.formats.readers import Reader


@with_bounds
@with_about
def analyze(
    traces: Traces,
    steps: StepRange = None,
    nvtx: NvtxPattern = None,
    start: StartTime = None,
    end: EndTime = None,
    rank: RankNumber = None,
    gpu: DeviceNumber = None,
    ranks: RankMap = None,
    config: ConfigFile = None,
    log: LogFile = None,
    emit_config: EmitConfig = None,
    ask_megatron: AskMegatron = True,
    form: Forms = None,
    flavor: MarkdownFlavor = None,
    output: OutputPlace = "-",
    ticket: TicketFolder = None,
    summary: SummaryFolder = None,
    force_overwrite: Force = False,
    full: Full = False,
    brief: Brief = False,
    keys: Keys = False,
    redact: Redact = True,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
    reader: ReaderName = Reader.AUTO,
    jobs: Jobs = None,
    scheduler: SchedulerAddress = None,
    about: dict[str, object] | None = None,
) -> int:
    """Diagnose a trace: which wall holds it back, what to try.

    Reads an Nsight Systems report (through your own nsys), an SQLite export of one, or the PyTorch
    profiler's JSON. Several files are ranks of one run. Never changes the input, never writes beside it
    unless asked. No network but to the scheduler that you name.
    """
    forms = or_patch(form, emit_config)
    want = output_of(
        forms, output, force=force_overwrite, full=full, keys=keys, flavor=flavor, ticket=ticket, brief=brief
    )
    files = traces_named(traces)
    plan = plan_results(Kind.ANALYSIS, want, [result_base(traces), *files], [config, log, ranks])
    check_folder(summary, files, force_overwrite)
    with progress_display() as progress:
        diagnosis = diagnoser.analyze(
            traces,
            steps=steps,
            nvtx=nvtx,
            start=start,
            end=end,
            rank=rank,
            gpu=gpu,
            nsys=nsys,
            cache_dir=cache_dir,
            reader=reader,
            jobs=jobs,
            ranks=ranks,
            scheduler=scheduler,
            config=config,
            log=log,
            about=about,
            ask_megatron=ask_megatron,
            redact=redact,
            progress=progress,
        )
    keep_summaries(summary, diagnosis.summaries, force_overwrite)
    write_results(diagnosis.result, plan, want)
    say_skipped(diagnosis.skipped)
    return 0


_EXAMPLES: Final = """
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
analyze.__doc__ = f"{analyze.__doc__}{_EXAMPLES}"
