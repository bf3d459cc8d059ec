"""Options, each written once: what the API takes, its flag, its help, which lists them in this order.

A request (`diagnoser.options.requests`) has one as a field, a command as a parameter. What a shell completes
is asked at each Tab: nothing heavy is loaded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer

from heuristics.config.about import OPTIONS, Guidance
from reports.formats import FRAMEWORKS, Kind, named
from traces.formats.readers import Reader
from traces.patterns import compiled
from traces.recording.options import Question, TrainedWith

Place = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Typed:
    """What a command line makes of an option where that is not what the API takes."""

    kind: Any
    default: Any = None


FILE: Final = Typed(Path | None)


Form = StrEnum("Form", [form.upper() for form in named(Kind.ANALYSIS)])  # type: ignore[misc]
CheckForm = StrEnum("CheckForm", [form.upper() for form in named(Kind.CONFIGURATION)])  # type: ignore[misc]
PlanForm = StrEnum("PlanForm", [form.upper() for form in named(Kind.LAYOUTS)])  # type: ignore[misc]
MergeForm = StrEnum("MergeForm", [form.upper() for form in named(Kind.RUN)])  # type: ignore[misc]
Flavor = StrEnum("Flavor", "GITHUB JIRA")
Answer = StrEnum("Answer", "PASS FAIL")
"""Of a gate, as `heuristics.result.gate` has them, which loads msgspec; a test holds them together."""

_HEURISTICS: Final = Path(__file__).resolve().parents[2] / "heuristics"
_FIX: Final = compiled(r"(?m)^\[([A-Z]+-\d{1,4})\]")
_WALLS: Final = ("memory", "communication", "host_overhead", "compute")
"""As `heuristics.run.run` has them, which loads numpy; a test holds them together."""


def explain_words(incomplete: str) -> list[str]:
    from reports.measures import glossary, measures

    tables = ((_HEURISTICS / "fixes" / f"{wall}.toml").read_text(encoding="utf-8") for wall in _WALLS)
    fixes = [number for table in tables for number in _FIX.findall(table)]
    words = glossary()
    return _beginning(
        incomplete,
        (*_WALLS, *fixes, *words["finding"], *measures(), *words["word"], *words["screen"], *words["field"]),
    )


def scenarios(incomplete: str) -> list[str]:
    from diagnoser.demo import RECORDINGS

    return _beginning(incomplete, ("list", *RECORDINGS))


def patches(incomplete: str) -> list[str]:
    return _beginning(incomplete, FRAMEWORKS)


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [one for one in dict.fromkeys(words) if one.startswith(incomplete)]


def option(takes: str | None, help: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, metavar=takes, help=help, show_default=False, **more)


def argument(takes: str, help: str, **more: Any) -> Any:
    return typer.Argument(metavar=takes, readable=False, show_default=False, help=help, **more)


def _format(forms: type[StrEnum]) -> Any:
    help = "Format; repeat for several [default: as -o ends, or text]."
    return option("|".join(forms), help, "--format", "-f")


Traces = Annotated[
    list[Path],
    argument(
        "TRACE",
        ".nsys-rep, .qdrep, SQLite export of one, or PyTorch profiler .json[.gz]; several of one run, "
        "a folder of them, or a pattern: 'ranks/*.sqlite'.",
    ),
]
OneTrace = Annotated[Path, argument("TRACE", "The recording to look at, a folder of them, or a pattern.")]
Summaries = Annotated[
    list[Path] | None,
    argument(
        "[SUMMARY]",
        "What analyze --summary wrote: files, or folders of them. May be left out with --witness.",
    ),
]
Word = Annotated[
    str,
    argument(
        "[WORD]",
        "A wall, a fix, a measure, or any id that a result prints; none: list.",
        autocompletion=explain_words,
    ),
]
ConfigArgument = Annotated[
    Path,
    argument(
        "FILE", "Megatron-Bridge YAML or overrides, Megatron-LM command or script, or a log's arguments."
    ),
]
ModelArgument = Annotated[
    str,
    argument(
        "MODEL|FILE", "A model by name, such as Qwen3-30B-A3B, or a configuration, as check-config takes it."
    ),
]
ResultFile = Annotated[
    Path, argument("RESULT.json", "What analyze, compare or check-config wrote with -f json; .json.gz too.")
]
BaseRun = Annotated[
    Path | None,
    argument(
        "[BASE]",
        "The run before: a trace, a folder or pattern of them, the JSON that analyze made, or without any "
        "trace its configuration. Left out with --baseline, or with logs alone.",
    ),
]
NewRun = Annotated[Path | None, argument("[NEW]", "The run after, likewise.")]

GateLimit = Annotated[
    str | None,
    option(
        "PCT",
        "End with 1 where new is slower by more than this, such as 3%, or where that is not known; else "
        "with 0.",
    ),
]
WhereUndecided = Annotated[
    str | None,
    option("|".join(Answer), "What the gate answers where it cannot be judged [default: fail]."),
    Typed(Answer | None),
]
WhereNotComparable = Annotated[
    str | None,
    option("|".join(Answer), "What the gate answers for runs that cannot be compared [default: fail]."),
    Typed(Answer | None),
]
Expectations = Annotated[
    Sequence[str],
    option(
        "FIX=GAIN",
        "What a fix of the new run should gain of a step: com-3=6ms, or com-3=5%; may be repeated. "
        "Without it, what the plan of the base expects.",
    ),
    Typed(list[str], ()),
]
MoreBase = Annotated[
    Sequence[Any],
    option(
        "FILE",
        "A further recording of what the base is, or its result: how much runs vary by themselves counts "
        "then; may be repeated.",
    ),
    Typed(list[Path], ()),
]
_LOG_HELP = "What the {} run printed: its steps without the profiler give the size."
_CONFIG_HELP = "Configuration of the {} run, as analyze takes it: what changed in it can explain."
_GPU_HELP = "CUDA device of the {} run that is compared [default: the first]."
BaseLog = Annotated[Place | None, option("FILE", _LOG_HELP.format("base")), FILE]
NewLog = Annotated[Place | None, option("FILE", _LOG_HELP.format("new")), FILE]
BaseConfig = Annotated[Place | None, option("FILE", _CONFIG_HELP.format("base")), FILE]
NewConfig = Annotated[Place | None, option("FILE", _CONFIG_HELP.format("new")), FILE]
BaseGpu = Annotated[int | None, option("N", _GPU_HELP.format("base"))]
NewGpu = Annotated[int | None, option("N", _GPU_HELP.format("new"))]
Baseline = Annotated[str | None, option("NAME", "The base is this baseline of the history; give NEW alone.")]
GpuCount = Annotated[int | None, option("N", "GPUs to train on [default: the configuration's].")]
SequenceLength = Annotated[
    int | None, option("N", "Tokens of a sequence [default: the configuration's, or 4,096].")
]
GlobalBatch = Annotated[
    int | None, option("N", "Sequences of a step [default: the configuration's, or 16 for each GPU].")
]
StepRange = Annotated[
    str | None, option("A:B", "Use recorded steps A to B only, counted from 0, B excluded.")
]
NvtxPattern = Annotated[
    str | None, option("REGEX", "Take each NVTX range matching REGEX on the launching thread as a step.")
]
StartTime = Annotated[
    str | None, option("TIME", "Cut the window here: 1.5s, 1500ms, ... on the trace's clock.")
]
EndTime = Annotated[str | None, option("TIME", "Cut the window here.")]
RankNumber = Annotated[int | None, option("N", "Only this rank, where the trace records ranks.")]
DeviceNumber = Annotated[int | None, option("N", "Only this CUDA device.")]
RankMap = Annotated[
    Place | None,
    option(
        "MAP.csv",
        "Rank numbers of recordings that have none: columns file, rank and, where needed, process, "
        "device, host, world_size.",
    ),
    FILE,
]
WitnessFiles = Annotated[
    Sequence[Any],
    option(
        "FILE",
        "Dumps of PyTorch's Flight Recorder, or JSON of NCCL Inspector: files, folders of them or patterns; "
        "may be repeated. They show where a run hangs, and ranks that were not profiled.",
        "--witness",
    ),
    Typed(list[Path], ()),
]
SnapshotFiles = Annotated[
    Sequence[Any],
    option(
        "FILE",
        "Memory snapshots that torch.cuda.memory._dump_snapshot wrote, or their JSON; may be repeated. They "
        "show the peak by what memory is for and by stack.",
        "--memory-snapshot",
    ),
    Typed(list[Path], ()),
]
ConfigFile = Annotated[
    Place | None,
    option(
        "FILE",
        "The run's configuration: Megatron-Bridge YAML or overrides, Megatron-LM command or script. "
        "Fixes are then checked against it.",
    ),
    FILE,
]
SymptomsFile = Annotated[
    Place | None, option("S.json", "Measurements by the document's names, or an earlier result."), FILE
]
LogFile = Annotated[
    Place | None,
    option("FILE", "What the run printed: step time without the profiler, versions, memory, failures."),
    FILE,
]
EmitConfig = Annotated[
    str | None,
    option(
        "bridge|megatron-lm",
        "The first step of the plan as a patch to paste, instead of the report.",
        autocompletion=patches,
    ),
]
AskMegatron = Annotated[
    bool,
    option(
        None,
        "Ask the installed megatron-core whether it takes each change (about 5 s); on by default.",
        "--megatron/--no-megatron",
    ),
]
Forms = Annotated[list[Form] | None, _format(Form)]
CheckForms = Annotated[list[CheckForm] | None, _format(CheckForm)]
PlanForms = Annotated[list[PlanForm] | None, _format(PlanForm)]
MergeForms = Annotated[list[MergeForm] | None, _format(MergeForm)]
MarkdownFlavor = Annotated[Flavor | None, option("github|jira", "Whose markup -f markdown is [github].")]
OutputPlace = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File, folder, '-' (stdout), or '.': <base>_moe-diag.<ext> beside the input.",
    ),
]
OpenPage = Annotated[bool, option(None, "Open the page in a browser once it is written.", "--open")]
TicketFolder = Annotated[
    Path | None,
    option(
        "DIR",
        "Write what a ticket needs into DIR: the report as .md, .html and .json, its picture as .png, "
        "and a manifest; all or nothing.",
    ),
]
PageTitle = Annotated[
    str | None, option("TEXT", "Title of the page and its picture, in place of the names of the inputs.")
]
PageNote = Annotated[
    list[str] | None,
    option(
        "TEXT",
        "Text below the title of the page, of one line or several; may be repeated. Paths, addresses and "
        "secrets are withheld as in the report.",
    ),
]
SummaryFolder = Annotated[
    Path | None,
    option("FOLDER", "Also keep a summary of each rank in FOLDER, at most 64 kB, for moe-diag merge."),
]
Force = Annotated[bool, option(None, "Replace existing output files.", "--force-overwrite")]
Full = Annotated[
    bool, option(None, "Everything: evidence, all fixes and refusals, kernels, layers, gaps.", "--full")
]
Brief = Annotated[
    bool,
    option(
        None,
        "With -f json: a short result for programs, below 4 kB: verdict, costs, first steps, faults.",
        "--brief",
    ),
]
Edition = StrEnum("Edition", {one.upper(): one for one in get_args(Guidance)})  # type: ignore[misc]
GuideEdition = Annotated[
    Edition, option("EDITION", "Which edition of NVIDIA's guides; the newest by default.", "--guidance")
]
WholeWord = Annotated[bool, option(None, "Everything that is known of the word.", "--full")]
Keys = Annotated[bool, option(None, "Show the JSON key beside each name.", "--keys")]
Redact = Annotated[
    bool,
    option(
        None,
        "--no-redact shows paths as given and texts of the configuration; withheld by default.",
        "--redact/--no-redact",
    ),
]
FactsFile = Annotated[
    bool,
    option(
        None,
        "Take facts of the run from moe-diag.toml, or [tool.moe-diag] of pyproject.toml; on by default.",
        "--facts/--no-facts",
    ),
]
Tag = Annotated[str, option("TEXT", "A note, such as a commit.")]
KeepOrigin = Annotated[
    bool, option(None, "Keep this machine's name and the file's path as well.", "--keep-origin")
]
StoreFile = Annotated[
    Path | None,
    option("FILE", "The history [default: $MOE_DIAG_HISTORY, else ~/.local/share/moe-diag/history.sqlite]."),
]
NsysPath = Annotated[
    str | None, option("PATH", "The nsys that exports reports (else $NSYS, PATH, usual folders).")
]
CacheDir = Annotated[
    Place | None, option("DIR", "Where exports are kept [default: ~/.cache/moe-diag]."), FILE
]
ReaderName = Annotated[
    str,
    option(
        "|".join(Reader),
        "What reads an SQLite file: its pages, or sqlite3 [default: pages of large files, faster].",
    ),
    Typed(Reader, Reader.AUTO),
]
Jobs = Annotated[
    int | None,
    option(
        "N", "How many traces are read at once, each in a process of its own [default: the cores].", min=1
    ),
    Typed(int | None),
]
SchedulerAddress = Annotated[
    str | None,
    option("ADDRESS", "Have the traces read by the workers of this dask scheduler: tcp://HOST:8786."),
]
AskedFor = Annotated[
    Question, typer.Option("--for", metavar="|".join(Question), help="What the recording is to answer.")
]
Framework = Annotated[
    TrainedWith, typer.Option(metavar="|".join(TrainedWith), help="Whose flags mark the steps.")
]
Slurm = Annotated[bool, option(None, "A line for srun; otherwise for torchrun.", "--slurm")]
Keep = Annotated[Path | None, option("PATH", "Keep the simulated export here, to analyze it yourself.")]
About = Annotated[Mapping[str, object] | None, OPTIONS]
"""An option for each of these, after all others."""
