"""What is asked for, as one object: its fields are keywords of the API and options of the command line.

And the line that makes a result again, as its document tells it.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import wraps
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from diagnoser.diagnosis import Diagnosis
from diagnoser.options import (
    FILE,
    About,
    AskMegatron,
    BaseConfig,
    BaseGpu,
    BaseLog,
    CacheDir,
    ConfigFile,
    DeviceNumber,
    EndTime,
    Expectations,
    GateLimit,
    Jobs,
    LogFile,
    NewConfig,
    NewGpu,
    NewLog,
    NsysPath,
    NvtxPattern,
    Place,
    RankMap,
    RankNumber,
    ReaderName,
    Redact,
    SchedulerAddress,
    StartTime,
    StepRange,
    SymptomsFile,
)
from diagnoser.options.given import given_from
from heuristics.config.about import OPTIONS, option_of
from traces.progress import Progress, silent

if TYPE_CHECKING:
    from traces.formats.open import ReadOptions

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")

Source = Place | Mapping[str, Any] | Diagnosis
"""The path of a trace, of several (a folder, a pattern) or of an earlier result; or what holds a result."""

_HOW: Final = frozenset({"nsys", "cache_dir", "reader", "jobs", "scheduler"})
"""Options that change no result, and are no part of the line that makes it again."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """One run to be diagnosed."""

    paths: Place | Iterable[Place]
    _: KW_ONLY
    steps: StepRange = None
    nvtx: NvtxPattern = None
    start: StartTime = None
    end: EndTime = None
    rank: RankNumber = None
    gpu: DeviceNumber = None
    nsys: NsysPath = None
    cache_dir: CacheDir = None
    reader: ReaderName = "auto"
    jobs: Jobs = 1
    ranks: RankMap = None
    scheduler: SchedulerAddress = None
    config: ConfigFile = None
    log: LogFile = None
    about: About = None
    ask_megatron: AskMegatron = True
    redact: Redact = True
    progress: Progress = silent


@dataclass(frozen=True, slots=True)
class Check:
    """A configuration to be judged without a trace."""

    path: Place
    _: KW_ONLY
    log: LogFile = None
    symptoms: SymptomsFile = None
    about: About = None
    ask_megatron: AskMegatron = True
    redact: Redact = True
    progress: Progress = silent


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs to be compared, both read alike."""

    base: Source
    new: Source
    _: KW_ONLY
    gate: GateLimit = None
    expect: Expectations = ()
    steps: StepRange = None
    nvtx: NvtxPattern = None
    base_gpu: BaseGpu = None
    new_gpu: NewGpu = None
    base_config: BaseConfig = None
    new_config: NewConfig = None
    base_log: BaseLog = None
    new_log: NewLog = None
    nsys: NsysPath = None
    cache_dir: CacheDir = None
    reader: ReaderName = "auto"
    jobs: Jobs = 1
    about: About = None
    redact: Redact = True


def path_of(given: Place | None) -> Path | None:
    """A file that may not be given."""
    return None if given is None else Path(given)


def paths_of(given: Place | Iterable[Place]) -> list[Path]:
    """One file, or several."""
    return [Path(path) for path in ([given] if isinstance(given, str | PathLike) else given)]


def reading_of(asked: Analysis | Comparison) -> "ReadOptions":
    """How traces are read. Raises `UsageError` for a reader that there is not."""
    from traces.formats.open import ReadOptions
    from traces.formats.readers import reader_named

    return ReadOptions(asked.nsys, path_of(asked.cache_dir), reader_named(asked.reader))


def options_of(asked: Analysis | Check | Comparison) -> Iterator[tuple[str, Any]]:
    """Options that make the same result again, with their values; not what is said of the run."""
    hints = get_type_hints(type(asked), include_extras=True)
    for one in fields(asked):
        value: Any = getattr(asked, one.name)
        value, hint = tuple(value) if isinstance(value, list) else value, hints[one.name]
        is_told = one.name not in {*_HOW, "about", "redact"} and value != one.default
        if not is_told or get_origin(hint) is not Annotated:
            continue
        info, *typed = get_args(hint)[1:]
        if value is False:
            yield info.default.partition("/")[2], True
        else:
            yield f"--{one.name.replace('_', '-')}", Path(value) if typed == [FILE] else value


def keywords(request: Callable[P, A]) -> Callable[[Callable[[A], R]], Callable[P, R]]:
    """Let a function of a request be called with the request's fields."""

    def made(function: Callable[[A], R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(request(*args, **kwargs))

        own, plain = signature(request), get_type_hints(request)
        parameters = [one.replace(annotation=plain[name]) for name, one in own.parameters.items()]
        returns = signature(function).return_annotation
        called.__signature__ = own.replace(parameters=parameters, return_annotation=returns)  # type: ignore[attr-defined]
        return called

    return made


Value = str | int | bool | Path | tuple[str, ...] | None


def command_line(
    command: str,
    files: Sequence[Path],
    options: Mapping[str, Value],
    about: Mapping[str, object] | None = None,
    redact: bool = True,
) -> str:
    """A line for a shell: the command, its files, the options that were given, and what was said of the run.

    An option whose value is None or False was not given; one with several values is repeated. `redact`: files
    by their base names, and a text about the run that is no known word as its placeholder
    (`--container NAME`). Control characters become spaces.
    """
    from traces.spelling import printable

    words = ["moe-diag", command, *(path_words(path, redact) for path in files)]
    for option, value in options.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is None or one is False:
                continue
            words.append(option)
            if one is not True:
                words.append(path_words(one, redact) if isinstance(one, Path) else str(one))
    words += _about(about or {}, redact)
    if not redact:
        words.append("--no-redact")
    return shlex.join(printable(word, max(len(word), 3)) for word in words)


def made_again(
    command: str, files: Sequence[Path], asked: Analysis | Check | Comparison, more: Mapping[str, Value] = {}
) -> str:
    """The line of a request; `more`: options that are none of its fields, which come first."""
    return command_line(command, files, {**more, **dict(options_of(asked))}, asked.about, asked.redact)


def path_words(path: Path, redact: bool = True) -> str:
    """A path as a document may name it: its base name, or whole; bytes that are no UTF-8 are replaced."""
    name = os.fsencode(path.name or "." if redact else path).decode("utf-8", "replace")
    return f"./{name}" if name.startswith("-") else name


def _about(about: Mapping[str, object], redact: bool) -> Iterator[str]:
    from reports.result.fill.shown import given

    shown = given(given_from(about), redact)
    for field in (field for field in OPTIONS if field in about):
        kind, placeholder = OPTIONS[field].kind, OPTIONS[field].takes
        if kind is bool:
            yield option_of(field) if about[field] else f"--no-{option_of(field)[2:]}"
            continue
        if kind is list:
            for one in shown.get(field, [placeholder]):
                yield from (option_of(field), str(one))
            continue
        yield option_of(field)
        if field == "guidance":  # its words are few, and no part of the section
            yield str(about[field])
        else:
            value = shown.get(field, placeholder)
            yield ",".join(value) if isinstance(value, list) else str(value)
