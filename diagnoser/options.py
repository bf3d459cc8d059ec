"""The command line's options as types, each said once; commands that share one share its words."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from diagnoser.completion import explain_words, patches
from traces.formats.readers import Reader
from traces.recording.options import Question, TrainedWith


class Form(StrEnum):
    """Formats of a result."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    PNG = "png"
    SVG = "svg"
    PDF = "pdf"
    PERFETTO = "perfetto"


class CheckForm(StrEnum):
    """Formats of a judged configuration."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


class MergeForm(StrEnum):
    """Formats of a run put together from summaries."""

    TEXT = "text"
    JSON = "json"


class Flavor(StrEnum):
    """Who reads the markdown."""

    GITHUB = "github"
    JIRA = "jira"


_FORM_HELP = "Format; repeat for several [default: as -o ends, or text]."

Forms = Annotated[
    list[Form] | None,
    typer.Option("--format", "-f", metavar="|".join(Form), show_default=False, help=_FORM_HELP),
]
CheckForms = Annotated[
    list[CheckForm] | None,
    typer.Option("--format", "-f", metavar="|".join(CheckForm), show_default=False, help=_FORM_HELP),
]
MergeForms = Annotated[
    list[MergeForm] | None,
    typer.Option("--format", "-f", metavar="|".join(MergeForm), show_default=False, help=_FORM_HELP),
]
MarkdownFlavor = Annotated[
    Flavor | None,
    typer.Option(
        "--flavor", metavar="github|jira", show_default=False, help="Whose markup -f markdown is [github]."
    ),
]
TicketFolder = Annotated[
    Path | None,
    typer.Option(
        "--ticket",
        metavar="DIR",
        help="Write what a ticket needs into DIR: the report as .md, .html and .json, its picture as .png, "
        "and a manifest; all or nothing.",
    ),
]
SummaryFolder = Annotated[
    Path | None,
    typer.Option(
        "--summary",
        metavar="FOLDER",
        help="Also keep a summary of each rank in FOLDER, at most 64 kB, for moe-diag merge.",
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact/--no-redact",
        show_default=False,
        help="--no-redact shows paths as given and texts of the configuration; withheld by default.",
    ),
]
NsysPath = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The nsys that exports reports (else $NSYS, PATH, usual folders)."),
]
Full = Annotated[
    bool, typer.Option("--full", help="Everything: evidence, all fixes and refusals, kernels, layers, gaps.")
]
Brief = Annotated[
    bool,
    typer.Option(
        "--brief",
        help="With -f json: a short result for programs, below 4 kB: verdict, costs, first steps, faults.",
    ),
]
Keys = Annotated[bool, typer.Option("--keys", help="Show the JSON key beside each name.")]
CacheDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where exports are kept [default: ~/.cache/moe-diag].")
]
ReaderName = Annotated[
    Reader,
    typer.Option(
        "--reader",
        metavar="|".join(Reader),
        show_default=False,
        help="What reads an SQLite file: its pages, or sqlite3 [default: pages of large files, faster].",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default=False,
        help="How many traces are read at once, each in a process of its own [default: the cores].",
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        show_default=False,
        help="End where a process takes more memory than this, such as 8G or 512M; the workers of a "
        "scheduler have bounds of their own.",
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", show_default=False, help="End where it takes longer than this: 90 (seconds), 5m, 2h."
    ),
]
SchedulerAddress = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Have the traces read by the workers of this dask scheduler: tcp://HOST:8786.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The run's configuration: Megatron-Bridge YAML or overrides, Megatron-LM command or script. "
        "Fixes are then checked against it.",
    ),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="What the run printed: step time without the profiler, versions, memory, failures.",
    ),
]
EmitConfig = Annotated[
    str | None,
    typer.Option(
        metavar="bridge|megatron-lm",
        autocompletion=patches,
        help="The first step of the plan as a patch to paste, instead of the report.",
    ),
]
AskMegatron = Annotated[
    bool,
    typer.Option(
        "--megatron/--no-megatron",
        show_default=False,
        help="Ask the installed megatron-core whether it takes each change (about 5 s); on by default.",
    ),
]
OutputPlace = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File, folder, '-' (stdout), or '.': <base>_moe-diag.<ext> beside the input.",
    ),
]
Force = Annotated[bool, typer.Option("--force-overwrite", help="Replace existing output files.")]

StepRange = Annotated[
    str | None,
    typer.Option(metavar="A:B", help="Use recorded steps A to B only, counted from 0, B excluded."),
]

NvtxPattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX", help="Take each NVTX range matching REGEX on the launching thread as a step."
    ),
]

StartTime = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Cut the window here: 1.5s, 1500ms, ... on the trace's clock."),
]

EndTime = Annotated[str | None, typer.Option(metavar="TIME", help="Cut the window here.")]

RankNumber = Annotated[
    int | None, typer.Option(metavar="N", help="Only this rank, where the trace records ranks.")
]

DeviceNumber = Annotated[int | None, typer.Option(metavar="N", help="Only this CUDA device.")]

Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE",
        readable=False,
        show_default=False,
        help=".nsys-rep, .qdrep, SQLite export of one, or PyTorch profiler .json[.gz]; several of one run, "
        "a folder of them, or a pattern: 'ranks/*.sqlite'.",
    ),
]

RankMap = Annotated[
    Path | None,
    typer.Option(
        "--ranks",
        metavar="MAP.csv",
        help="Rank numbers of recordings that have none: columns file, rank and, where needed, process, "
        "device, host, world_size.",
    ),
]

OneTrace = Annotated[
    Path,
    typer.Argument(metavar="TRACE", readable=False, show_default=False, help="The recording to look at."),
]

Summaries = Annotated[
    list[Path],
    typer.Argument(
        metavar="SUMMARY",
        readable=False,
        show_default=False,
        help="What analyze --summary wrote: files, or folders of them.",
    ),
]

Word = Annotated[
    str,
    typer.Argument(
        metavar="[WORD]",
        show_default=False,
        autocompletion=explain_words,
        help="A wall, a fix, a measure, or any id that a result prints; none: list.",
    ),
]

ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        readable=False,
        show_default=False,
        help="Megatron-Bridge YAML or overrides, Megatron-LM command or script, or a log's arguments.",
    ),
]

SymptomsFile = Annotated[
    Path | None,
    typer.Option(metavar="S.json", help="Measurements by the document's names, or an earlier result."),
]

ResultFile = Annotated[
    Path,
    typer.Argument(
        metavar="RESULT.json",
        readable=False,
        show_default=False,
        help="What analyze, compare or check-config wrote with -f json; .json.gz too.",
    ),
]

BaseRun = Annotated[
    Path,
    typer.Argument(
        metavar="BASE",
        readable=False,
        show_default=False,
        help="The run before: a trace, a folder or pattern of them, or the JSON that analyze made. Left out "
        "with --baseline.",
    ),
]

NewRun = Annotated[
    Path | None,
    typer.Argument(metavar="NEW", readable=False, show_default=False, help="The run after, likewise."),
]

GateLimit = Annotated[
    str | None,
    typer.Option(
        "--gate",
        metavar="PCT",
        help="Exit with 1 where new is slower by more than this, such as 3%, or where that is undecided.",
    ),
]

Expectations = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="FIX=GAIN",
        help="What a fix of the new run should gain of a step: com-3=6ms, or com-3=5%; may be repeated. "
        "Without it, what the plan of the base expects.",
    ),
]

Baseline = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The base is this baseline of the history; give NEW alone."),
]

_LOG_HELP = "What the {} run printed: its steps without the profiler give the size."
_CONFIG_HELP = "Configuration of the {} run, as analyze takes it: what changed in it can explain."
_GPU_HELP = "CUDA device of the {} run that is compared [default: the first]."

BaseLog = Annotated[Path | None, typer.Option(metavar="FILE", help=_LOG_HELP.format("base"))]
NewLog = Annotated[Path | None, typer.Option(metavar="FILE", help=_LOG_HELP.format("new"))]
BaseConfig = Annotated[Path | None, typer.Option(metavar="FILE", help=_CONFIG_HELP.format("base"))]
NewConfig = Annotated[Path | None, typer.Option(metavar="FILE", help=_CONFIG_HELP.format("new"))]
BaseGpu = Annotated[int | None, typer.Option(metavar="N", help=_GPU_HELP.format("base"))]
NewGpu = Annotated[int | None, typer.Option(metavar="N", help=_GPU_HELP.format("new"))]
AskedFor = Annotated[
    Question,
    typer.Option("--for", metavar="|".join(Question), help="What the recording is to answer."),
]
Framework = Annotated[
    TrainedWith,
    typer.Option(metavar="|".join(TrainedWith), help="Whose flags mark the steps."),
]
Slurm = Annotated[bool, typer.Option("--slurm", help="A line for srun; otherwise for torchrun.")]
