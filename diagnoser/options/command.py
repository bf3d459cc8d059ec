"""A function becomes a command: requests become options; `--max-memory` and `--timeout` bound what it takes.

Memory is bounded for each process by the system itself (`RLIMIT_DATA`): what numpy and SQLite ask for beyond
it raises MemoryError, and processes that are started, nsys too, have the same bound. Address space is not
bounded: libraries reserve far more of it than they use. Time ends a command as Ctrl-C does, so that whatever
cleans up after that cleans up here.
"""

import resource
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial
from inspect import Parameter, Signature, signature
from types import FrameType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer

from diagnoser import options
from diagnoser.options import About, MaxMemory, TimeLimit, Typed
from diagnoser.options.given import SYNONYMS
from diagnoser.options.help import ABOUT, Group, HelpAll
from heuristics.config.about import OPTIONS, option_of
from traces.errors import OutOfMemory, OutOfTime, UsageError
from traces.limits import Limit
from traces.patterns import compiled

LEAST: Final = Limit(
    256 << 20, "bytes", "ours: below 150 MB a library cannot be loaded, and ends the program in its words"
)
LONGEST: Final = Limit(30 * 24 * 3600, "seconds", "ours: a month; a longer one is a slip")

_SIZE: Final = compiled(r"(?i)(\d{1,6}(?:\.\d{1,3})?)\s*([MGT])(?:i?B)?")
_TIME: Final = compiled(r"(\d{1,8}(?:\.\d{1,3})?)\s*(s|m|h|)")
_BYTES: Final = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
MOST: Final = 7
"""Parameters of a command whose help is one screen as it is."""

Command = Callable[..., int | None]


def commands_of(name: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=Group,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def command(*, lacks: Collection[str] = (), bounded: bool = False) -> Callable[[Command], Command]:
    """Let a function be read by the parser of the command line.

    A parameter of type `partial[R]` takes what was typed of the request R, which has no options of the names
    in `lacks`. Options stand in the help as in `diagnoser.options`. `bounded`: it has `--max-memory` and
    `--timeout`.
    """

    def made(function: Command) -> Command:
        own = signature(function, eval_str=True).parameters
        listed, requests = [], dict[str, tuple[type, list[Parameter]]]()
        for name, one in own.items():
            if get_origin(one.annotation) is partial:
                (request,) = get_args(one.annotation)
                requests[name] = request, list(_fields(request, lacks))
                listed += requests[name][1]
            else:
                listed.append(one)
        if bounded:
            listed += [_parameter("max_memory", None, MaxMemory), _parameter("timeout", None, TimeLimit)]
        known = list(vars(options).values())
        listed.sort(key=lambda one: known.index(one.annotation) if one.annotation in known else -1)

        def called(**typed: Any) -> int | None:
            typed.pop("help_all", None)
            bounds = [typed.pop(name, None) if bounded else None for name in ("max_memory", "timeout")]
            said = {key: typed.pop(key) for key in [*typed] if key.startswith(ABOUT)}
            about = {key.removeprefix(ABOUT): one for key, one in said.items() if one is not None}
            for name, (request, several) in requests.items():
                typed[name] = partial(
                    request,
                    **{
                        one.name: about if one.annotation == About else typed.pop(one.name) for one in several
                    },
                )
            with within(*bounds):
                return function(**typed)

        own_names = {one.name for one in listed}
        shown = [each for one in listed for each in _as_typed(one, own_names)]
        if len(shown) > MOST:
            shown.append(_parameter("help_all", False, HelpAll))
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in shown}
        return called

    return made


def _fields(request: type, lacks: Collection[str]) -> Iterator[Parameter]:
    hints = get_type_hints(request, include_extras=True)
    for one in fields(request):
        if get_origin(hints[one.name]) is Annotated and one.name not in lacks:
            yield _parameter(one.name, one.default, hints[one.name])


def _parameter(name: str, default: object, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _as_typed(one: Parameter, own: Collection[str]) -> Iterator[Parameter]:
    """A parameter as the parser takes it; what is said of the run as an option a field.

    `own`: parameters of the command, whose names are no other word for a field.
    """
    match get_args(one.annotation):
        case _, info, Typed(kind, default):
            yield one.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, info], default=default)
        case _ if one.annotation == About:
            for field, row in OPTIONS.items():
                flag = option_of(field) + (f"/--no-{field.replace('_', '-')}" if row.kind is bool else "")
                others = (
                    f"--{word}" for word, meant in SYNONYMS.items() if meant == field and word not in own
                )
                info = typer.Option(
                    flag,
                    *others,
                    metavar=row.takes or None,
                    help=f"About the run: {row.help}",
                    show_default=False,
                )
                kind = list[str] if row.kind is list else row.kind
                yield _parameter(ABOUT + field, None, Annotated[kind | None, info])
        case _:
            yield one.replace(kind=Parameter.KEYWORD_ONLY)


def out_of_memory(what: str) -> OutOfMemory:
    bound = resource.getrlimit(resource.RLIMIT_DATA)[0]
    there_is = f"the {bound >> 20} MB allowed" if bound > 0 else "is available"
    return OutOfMemory(
        f"{what} needs more memory than {there_is}. Allow more with --max-memory, read one trace at a time "
        "with --jobs 1, or use a machine with more memory."
    )


def out_of_time(timeout: str) -> OutOfTime:
    return OutOfTime(
        f"not finished within --timeout {timeout}; nothing unfinished was left behind. "
        "Allow more time, or give fewer traces."
    )


@contextmanager
def within(max_memory: str | None, timeout: str | None) -> Iterator[None]:
    """No process takes more memory than this, and after this time it is ended as by Ctrl-C.

    Raises `OutOfMemory` and `OutOfTime`; `UsageError` for what is no bound, or none of this system.
    """
    is_up: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        is_up.append(number)
        signal.default_int_handler(number, frame)

    with ExitStack() as undo:
        if max_memory is not None:
            most, before = bytes_of(max_memory), resource.getrlimit(resource.RLIMIT_DATA)
            most = most if before[1] == resource.RLIM_INFINITY else min(most, before[1])
            resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
            undo.callback(resource.setrlimit, resource.RLIMIT_DATA, before)
        if timeout is not None:
            most_s = seconds_of(timeout)
            undo.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, end))
            undo.callback(signal.setitimer, signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_REAL, most_s)
        no_memory = out_of_memory("the command")  # made while there is memory for it
        try:
            yield
        except BaseException as error:  # whatever it was ended as
            if not is_up and isinstance(error, MemoryError):
                raise no_memory from None
            if not is_up:
                raise
    if is_up:
        raise out_of_time(str(timeout))


def bytes_of(typed: str) -> int:
    """A typed `--max-memory`. Raises `UsageError` for what is no size, or of no use on this system."""
    found = _SIZE.fullmatch(typed.strip())
    if not found:
        raise UsageError(f"--max-memory {typed!r} is no size. Give one such as 8G or 512M.")
    wanted = int(float(found[1]) * _BYTES[found[2].upper()])
    if wanted < LEAST.value:
        raise UsageError(f"--max-memory {typed} is too little to start with. Give 256M or more.")
    if sys.platform != "linux":
        raise UsageError(f"--max-memory {typed} works on Linux only. Leave the option out.")
    return wanted


def seconds_of(typed: str) -> float:
    """A typed `--timeout`. Raises `UsageError` for what is no time."""
    found = _TIME.fullmatch(typed.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST.value:
        raise UsageError(f"--timeout {typed!r} is no time. Give one such as 90, 90s, 5m or 2h.")
    return seconds
