"""Scores of the third simulator's runs -> a markdown table, and a line for each that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.score.third.one import Scored
from bench.third.handicaps import Kind

_COLUMNS = (
    "runs of",
    "runs",
    "cause",
    "and ranks",
    "saving within 3 points",
    "saving not known",
    "waiting within 5 %",
    "aligned, off by 20 us",
)


def table(results: Sequence[Scored]) -> str:
    """By how runs were recorded, and by handicap."""
    some = [one for one in results if not one.impossible]
    late = [one for one in some if one.case.kind is not Kind.HEALTHY]
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    lines.append(
        _row(["even windows, names or no pipeline", *_counts([one for one in late if not one.hard])])
    )
    lines.append(_row(["ragged, or a pipeline without names", *_counts([one for one in late if one.hard])]))
    for kind in Kind:
        for hard in (False, True):
            these = [one for one in some if one.case.kind is kind and one.hard is hard]
            if these:
                lines.append(_row([f"{kind.value}{', hard' if hard else ''}", *_counts(these)]))
    impossible = len(results) - len(some)
    if impossible:
        lines += ["", f"{impossible} draws are no runs: their cause does not matter however strong it is."]
    return "\n".join(lines) + "\n"


def _counts(some: Sequence[Scored]) -> list[str]:
    late = [one for one in some if one.case.kind is not Kind.HEALTHY]
    return [
        str(len(some)),
        _part([one.cause_right for one in some]),
        _part([one.right for one in some]),
        _part([one.saved_right for one in late]),
        _part([one.right and one.saved is None for one in late]),
        _part([one.wait_right for one in some]),
        str(sum(one.clock_wrong for one in some)),
    ]


def _part(right: Sequence[bool]) -> str:
    return f"{sum(right) / len(right):.0%} ({sum(right)} of {len(right)})" if right else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def wrong_ones(results: Sequence[Scored]) -> Iterator[str]:
    """A line for every run of which something is wrong."""
    for one in results:
        healthy = one.case.kind is Kind.HEALTHY
        fine = one.right and one.wait_right and not one.clock_wrong and (healthy or one.saved_right)
        if not one.impossible and not fine:
            yield wrong(one)


def wrong(one: Scored) -> str:
    """What was found of a run, and what is true."""
    name = f"{one.case.kind.value}-{one.case.seed}{' hard' if one.hard else ''} ({one.made})"
    if one.error:
        return f"{name}: {one.error}"
    words = [] if one.right else [f"CAUSE {one.cause} {list(one.whom)}"]
    if one.case.kind is not Kind.HEALTHY and not one.saved_right:
        saved = "none" if one.saved is None else f"{one.saved:.1%}"
        words.append(f"SAVES {saved} of {one.true_saved:.1%}")
    if not one.wait_right:
        words.append(f"WAIT {one.wait_ms or 0:.2f} of {one.true_wait_ms:.2f} ms")
    if one.clock_wrong:
        words.append(f"CLOCK {one.clock_us:.0f} us")
    return f"{name}: {', '.join(words)} {one.why}"
