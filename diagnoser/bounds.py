"""`--max-memory` and `--timeout`: how much a command may take, ended by one clear line.

Memory is bounded for each process by the system itself (`RLIMIT_DATA`): what numpy and SQLite ask for beyond
it raises MemoryError, and processes that are started, nsys too, have the same bound. Address space is not
bounded: libraries reserve far more of it than they use. Time ends a command as Ctrl-C does, so that whatever
cleans up after that cleans up here.
"""

import inspect
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, Final

from diagnoser.options import MaxMemory, TimeLimit
from traces.errors import OutOfMemory, OutOfTime, UsageError
from traces.limits import Limit

try:
    import resource
except ImportError:  # not a system with limits of processes
    resource = None  # type: ignore[assignment]

LEAST: Final = Limit(
    256 << 20,
    "bytes",
    "ours: below 150 MB a library cannot be loaded, and ends the program in its words",
)
LONGEST: Final = Limit(30 * 24 * 3600, "seconds", "ours: a month; a longer one is a slip")

_SIZE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([MGT])(?:i?B)?", re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{1,8}(?:\.\d{1,3})?)\s*(s|m|h|)")
_BYTES: Final = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}


def with_bounds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--max-memory` and `--timeout` to a command, which runs within them."""

    @wraps(command)
    def wrapped(*args: Any, max_memory: str | None = None, timeout: str | None = None, **kwargs: Any) -> Any:
        with _memory(max_memory), _time(timeout):
            return command(*args, **kwargs)

    own = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in (("max_memory", MaxMemory), ("timeout", TimeLimit))
    ]
    whole = own.replace(parameters=[*own.parameters.values(), *added])
    wrapped.__signature__ = whole  # type: ignore[attr-defined]
    wrapped.__annotations__ = {name: parameter.annotation for name, parameter in whole.parameters.items()}
    del wrapped.__wrapped__  # or its own signature would be read instead
    return wrapped


def out_of_memory(what: str) -> OutOfMemory:
    """The error for what takes more memory than there is."""
    bound = resource.getrlimit(resource.RLIMIT_DATA)[0] if resource else -1
    there_is = f"the {bound >> 20} MB allowed" if bound > 0 else "is available"
    return OutOfMemory(
        f"{what} needs more memory than {there_is}. Allow more with --max-memory, read one trace at a time "
        "with --jobs 1, or use a machine with more memory."
    )


@contextmanager
def _memory(typed: str | None) -> Iterator[None]:
    """Within it no process takes more. Raises `OutOfMemory`; `UsageError` for what is no bound."""
    before = None if typed is None else _bound_memory(typed, _bytes(typed))
    error = out_of_memory("the command")  # made while there is memory for it
    try:
        yield
    except MemoryError:
        raise error from None
    finally:
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, before)


def _bound_memory(typed: str, wanted: int) -> tuple[int, int]:
    """Set the bound; gives what was set before."""
    if resource is None or sys.platform != "linux":
        raise UsageError(f"--max-memory {typed} works on Linux only. Leave the option out.")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = before[1] if before[1] != resource.RLIM_INFINITY else wanted
    resource.setrlimit(resource.RLIMIT_DATA, (min(wanted, most), before[1]))
    return before


@contextmanager
def _time(typed: str | None) -> Iterator[None]:
    """What takes longer is ended as by Ctrl-C. Raises `OutOfTime`; `UsageError` for what is no time."""
    if typed is None:
        yield
        return
    seconds, is_up = _seconds(typed), []
    if not hasattr(signal, "setitimer"):
        raise UsageError(f"--timeout {typed}: this system has no timer. Leave the option out.")

    def end(number: int, frame: FrameType | None) -> None:
        is_up.append(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except BaseException:  # whatever it was ended as
        if not is_up:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if is_up:
        raise OutOfTime(
            f"not finished within --timeout {typed}; nothing unfinished was left behind. "
            "Allow more time, or give fewer traces."
        )


def _bytes(typed: str) -> int:
    found = _SIZE.fullmatch(typed.strip())
    if not found:
        raise UsageError(f"--max-memory {typed!r} is no size. Give one such as 8G or 512M.")
    wanted = int(float(found[1]) * _BYTES[found[2].upper()])
    if wanted < LEAST.value:
        raise UsageError(f"--max-memory {typed} is too little to start with. Give 256M or more.")
    return wanted


def _seconds(typed: str) -> float:
    found = _TIME.fullmatch(typed.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST.value:
        raise UsageError(f"--timeout {typed!r} is no time. Give one such as 90, 90s, 5m or 2h.")
    return seconds
