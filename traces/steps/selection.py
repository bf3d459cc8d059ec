"""What the user asks to look at, before any trace is read."""

from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from traces.errors import UsageError
from traces.frozen import frozen
from traces.missing import of_known
from traces.patterns import Pattern, WrongPattern, compiled

_UNIT_NS: Final = {"": 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_TIME: Final = compiled(r"(?i)\s*([+-]?[0-9.]{1,40}(?:e[+-]?[0-9]{1,3})?)\s*(s|ms|us|ns)?\s*")
_NONE: Final = "none"
_STEPS: Final = compiled(r"\s*(\d{0,18})\s*:\s*(\d{0,18})\s*")


@frozen
class Selection:
    """A choice of steps, of time, of GPU. None everywhere: all steps of all GPUs.

    `steps` is (first, end) of recorded steps counted from 0, end excluded, None where open.
    `start_ns` and `end_ns` are on the export's clock. `whole`: all that was recorded as one window.
    `left_out_steps`: indices of steps to leave out in place of the hiccups.
    """

    steps: tuple[int, int | None] | None = None
    nvtx: Pattern | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    rank: int | None = None
    gpu: int | None = None
    whole: bool = False
    left_out_steps: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if self.by_time and (self.whole or self.steps is not None or self.nvtx is not None):
            raise UsageError(
                "--start/--end and --steps/--nvtx choose the window in two ways. Give one of them."
            )
        if self.start_ns is not None and self.end_ns is not None and self.start_ns >= self.end_ns:
            raise UsageError(
                "--start is not before --end, so the window is empty. Give a later --end."
            )

    @property
    def by_time(self) -> bool:
        return self.start_ns is not None or self.end_ns is not None


def parse_selection(
    steps: str | None = None,
    nvtx: str | None = None,
    start: str | None = None,
    end: str | None = None,
    rank: int | None = None,
    gpu: int | None = None,
) -> Selection:
    """Selection from the words of the command line. Raises `UsageError` with the form that is
    expected.
    """
    whole = steps == _NONE
    return Selection(
        None if whole else of_known(_parse_steps, steps),
        of_known(_parse_nvtx, nvtx),
        of_known(partial(_parse_time, "--start"), start),
        of_known(partial(_parse_time, "--end"), end),
        rank,
        gpu,
        whole,
    )


def _parse_steps(text: str) -> tuple[int, int | None]:
    match = _STEPS.fullmatch(text)
    if not match:
        raise UsageError(
            f"--steps {text!r} is not of the form A:B. Give for example --steps 2:5 for steps 2, "
            f"3, 4, or --steps none for all that was recorded as one window."
        )
    first, end = int(match[1] or 0), int(match[2]) if match[2] else None
    if end is not None and end <= first:
        raise UsageError(
            f"--steps {text!r} is empty, since B is excluded. Give for example --steps "
            f"{first}:{first + 1}."
        )
    return first, end


def _parse_nvtx(text: str) -> Pattern:
    try:
        return Pattern(text)
    except WrongPattern as error:
        raise UsageError(
            f"--nvtx {text!r} is no regular expression ({error}). Give for example --nvtx "
            f"'step_\\d+'."
        ) from None


def _parse_time(option: str, text: str) -> int:
    match = _TIME.fullmatch(text)
    try:
        exact = Decimal(match[1]) * _UNIT_NS[(match[2] or "").lower()] if match else None
    except InvalidOperation:
        exact = None
    if exact is None or abs(exact) >= 2**62:
        raise UsageError(
            f"{option} {text!r} is no time. Give for example {option} 1.5s or {option} 1500ms."
        )
    if exact != int(exact):
        raise UsageError(
            f"{option} {text!r} is finer than a nanosecond. Give at most nine decimals of a second."
        )
    return int(exact)


def seconds(time_ns: int) -> str:
    """A time as the nsys GUI shows it and as it can be typed: seconds with all nine decimals.

    From the integer, since UNIX times in ns are beyond a double.
    """
    sign, size_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{size_ns // 10**9}.{size_ns % 10**9:09d}s"
