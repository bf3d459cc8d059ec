"""What is asked for, as one object: its fields are keywords of the API and options of the command
line.

And the line that makes a result again, as its document tells it.
"""

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, fields
from errno import ENAMETOOLONG
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, get_args, get_origin

from diagnoser.diagnosis import Diagnosis
from diagnoser.options import ARGUMENTS, Place, rows
from diagnoser.options.faults import not_ours
from diagnoser.options.given import KINDS, WORDS, gate_frac, given_from, near_word
from heuristics.config.about import OPTIONS, option_of
from traces.errors import UsageError
from traces.frozen import frozen
from traces.missing import of_known
from traces.names.file_names import told_path
from traces.progress import Progress, silent
from traces.spelling import printable

if TYPE_CHECKING:
    from heuristics.comparison.gate import Asked
    from traces.formats.open import ReadOptions

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")

_KINDS: Final = {
    **KINDS,
    os.PathLike: "a path",
    Mapping: "a mapping",
    Sequence: "a list",
    Iterable: "a list",
}
About = Mapping[str, object]
"""What is said of a run, by the fields of `Given`."""
Source = Place | Mapping[str, Any] | Diagnosis
"""The path of a trace, of several (a folder, a pattern) or of an earlier result; or what holds a
result."""


@frozen
class Analysis:
    """One run to be diagnosed."""

    paths: Place | Iterable[Place]
    _: KW_ONLY
    steps: str | None = None
    nvtx: str | None = None
    start: str | None = None
    end: str | None = None
    rank: int | None = None
    gpu: int | None = None
    nsys: str | None = None
    cache_dir: Place | None = None
    reader: str = "auto"
    jobs: int | None = 1
    ranks: Place | None = None
    witness: Sequence[Any] = ()
    memory_snapshot: Sequence[Any] = ()
    scheduler: str | None = None
    config: Place | None = None
    log: Place | None = None
    about: About | None = None
    ask_megatron: bool = True
    redact: bool = True
    progress: Progress = silent


@frozen
class Check:
    """A configuration to be judged without a trace."""

    path: Place
    _: KW_ONLY
    log: Place | None = None
    symptoms: Place | None = None
    memory_snapshot: Sequence[Any] = ()
    about: About | None = None
    ask_megatron: bool = True
    redact: bool = True
    progress: Progress = silent


@frozen
class OfTwoRuns:
    """What is asked of two runs, whatever there is of them."""

    _: KW_ONLY
    gate: str | None = None
    undecided: str | None = None
    not_comparable: str | None = None
    about: About | None = None
    redact: bool = True


@frozen
class Comparison(OfTwoRuns):
    """Two runs to be compared, both read alike."""

    base: Source
    new: Source
    _: KW_ONLY
    expect: Sequence[str] = ()
    more_base: Sequence[Any] = ()
    steps: str | None = None
    nvtx: str | None = None
    base_gpu: int | None = None
    new_gpu: int | None = None
    base_config: Place | None = None
    new_config: Place | None = None
    base_log: Place | None = None
    new_log: Place | None = None
    nsys: str | None = None
    cache_dir: Place | None = None
    reader: str = "auto"
    jobs: int | None = 1


@frozen
class FilesComparison(OfTwoRuns):
    """Two runs to be compared by their configurations and logs; of either side one may be left
    out.
    """

    base: Place | None = None
    new: Place | None = None
    _: KW_ONLY
    base_log: Place | None = None
    new_log: Place | None = None
    progress: Progress = silent


@frozen
class LayoutPlan:
    """Layouts of a model, by its name or a configuration, on a number of GPUs."""

    model: str
    _: KW_ONLY
    gpus: int | None = None
    seq_length: int | None = None
    global_batch: int | None = None
    about: About | None = None
    redact: bool = True
    progress: Progress = silent


def path_of(given: Place | None) -> Path | None:
    return of_known(Path, given)


def reading_of(request: Analysis | Comparison) -> "ReadOptions":
    """How traces are read. Raises `UsageError` for a reader that there is not."""
    from traces.formats.open import ReadOptions
    from traces.formats.readers import reader_named

    return ReadOptions(request.nsys, path_of(request.cache_dir), reader_named(request.reader))


def gate_asked(request: OfTwoRuns) -> "Asked | None":
    """The gate, None without a limit. Raises `UsageError` for an answer that is none, or is of no
    gate.
    """
    from heuristics.comparison.gate import Asked
    from heuristics.result.gate import GateAnswer

    limit, answers = request.gate, dict[str, Any]()
    for field in ("undecided", "not_comparable"):
        text, flag = getattr(request, field), f"--{field.replace('_', '-')}"
        if text is None:
            continue
        if text not in get_args(GateAnswer):
            raise UsageError(
                f"{flag} {text!r} is no answer. Give {' or '.join(get_args(GateAnswer))}."
            )
        if limit is None:
            raise UsageError(
                f"{flag} {text} is the answer of a gate, and there is none. Add --gate 3%"
            )
        answers[field] = str(text)
    if limit is None:
        return None
    return Asked(gate_frac(limit), **answers)


def _check(
    name: str, takes: Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    """Raises `UsageError` for what a function does not take, in the words of its options."""
    known = takes.parameters
    for keyword, value in kwargs.items():
        if keyword not in known:
            raise UsageError(f"{name} takes no {keyword!r}. {_meant(keyword, value, known)}")
    try:
        given = takes.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise UsageError(f"{name}: {error}. It takes {', '.join(known)}.") from None
    for keyword, value in given.items():
        if kinds := _kinds_against(value, known[keyword].annotation):
            aside = (
                f" {_meant(keyword, value, known)}" if keyword in WORDS and "about" in known else ""
            )
            raise UsageError(f"{name}: {keyword} must be {' or '.join(kinds)}.{aside}")


def _kinds_against(value: object, hint: Any) -> list[str]:
    """In words the kinds that a hint names, where a value is of none of them; a path may stand for
    a text.
    """
    hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = {get_origin(kind) or kind for kind in hints}
    kinds_named = {*kinds}
    if Progress in kinds:  # whatever can be called
        return []
    is_number = hasattr(value, "__index__") and not isinstance(value, bool)
    if (int in kinds and is_number) or (str in kinds and isinstance(value, os.PathLike)):
        return []
    if isinstance(value, bool):
        kinds -= {int}
    elif isinstance(value, str):
        kinds -= {Sequence, Iterable}
    if isinstance(value, tuple(kinds)):
        return []
    return [words for kind, words in _KINDS.items() if kind in kinds_named] or ["of another kind"]


def _meant(unknown: str, value: object, known: Collection[str]) -> str:
    """What is said of the run stands in `about`; of all others the nearest."""
    words = WORDS if "about" in known else {}
    near = near_word(unknown, (*known, *words))
    if near in words:
        return f'Facts of the run stand in about={{"{words[near]}": {printable(repr(value), 40)}}}.'
    if near:
        return f"The nearest is {near}."
    return f"It takes {', '.join(known)}."


def keywords(request: Callable[P, A]) -> Callable[[Callable[[A], R]], Callable[P, R]]:
    takes = signature(request, eval_str=True)

    def made(function: Callable[[A], R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                _check(function.__name__, takes, args, kwargs)
                return function(request(*args, **kwargs))
            except OSError as error:
                if error.errno == ENAMETOOLONG:  # whoever looks for such a file first
                    raise UsageError(str(not_ours(error))) from None
                raise

        returns = signature(function).return_annotation
        called.__signature__ = takes.replace(return_annotation=returns)  # type: ignore[attr-defined]
        return called

    return made


Value = str | int | bool | Path | tuple[str | Path, ...] | None


def made_again(
    command: str,
    files: Sequence[Path],
    asked: Analysis | Check | OfTwoRuns | LayoutPlan,
    more: Mapping[str, Value] = {},
) -> str:
    """The line of a request; `more`: options that are none of its fields, which come first."""
    given = {**more}
    for item in fields(asked):
        value: Any = getattr(asked, item.name)
        value = tuple(value) if isinstance(value, list) else value
        row = rows().get(item.name)
        if not row or row.title == ARGUMENTS or not row.is_repeated or value == item.default:
            continue
        if value is False:
            given[row.flags[0].partition("/")[2]] = True
        else:
            given[f"--{item.name.replace('_', '-')}"] = Path(value) if row.kind == "file" else value
    return command_line(command, files, given, asked.about, asked.redact)


def command_line(
    command: str,
    files: Sequence[Path],
    given: Mapping[str, Value],
    about: About | None = None,
    redact: bool = True,
) -> str:
    """A line for a shell: the command, its files, the options that were given, and what was said of
    the run.

    An option whose value is None or False was not given; one with several values is repeated.
    `redact`: files by their base names, and a text about the run that is no known word as its
    placeholder (`--container NAME`). Control characters become spaces.
    """
    words = ["moe-diag", command, *(path_words(path, redact) for path in files)]
    for option, value in given.items():
        for item in value if isinstance(value, tuple) else (value,):
            if item is True:
                words.append(option)
            elif item is not None and item is not False:
                words += [option, path_words(item, redact) if isinstance(item, Path) else str(item)]
    words += [*_about(about or {}, redact), *(() if redact else ["--no-redact"])]
    return shlex.join(printable(word, max(len(word), 3)) for word in words)


def path_words(path: Path, redact: bool) -> str:
    """A path as a document may name it: its base name as far as that may be told, or whole.

    Bytes that are no UTF-8 are replaced.
    """
    name = told_path(path) or "." if redact else os.fsencode(path).decode("utf-8", "replace")
    if name.startswith("-"):
        return f"./{name}"
    return name


def _about(about: Mapping[str, object], redact: bool) -> Iterator[str]:
    from reports.result.fill.shown import given

    shown = given(given_from(about), redact)
    for field, row in OPTIONS.items():
        if field not in about:
            continue
        flag = option_of(field)
        # the words of --guidance are few, and no part of the section
        value = about[field] if field == "guidance" else shown.get(field, row.takes)
        if row.kind is bool:
            yield flag if about[field] else f"--no-{flag[2:]}"
        elif row.kind is list:
            for item in value if isinstance(value, list) else [value]:
                yield from (flag, str(item))
        else:
            yield from (flag, ",".join(value) if isinstance(value, list) else str(value))
