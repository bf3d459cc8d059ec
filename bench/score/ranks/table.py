"""Scores of runs of several ranks -> a markdown table, and a line for each that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.score.ranks.known import Simulator
from bench.score.ranks.one import Scored
from bench.simulate.ranks.described import Cause, Extent

_COLUMNS = ("simulator", "cause", "runs", "cause", "and rank", "wait within 5 %", "win within 3 points")


def table(results: Sequence[Scored]) -> str:
    """By simulator and cause, and of all; "and rank" of healthy runs: no straggler."""
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    for simulator in Simulator:
        for cause in Cause:
            for extent in Extent:
                which = simulator, cause, extent
                some = [
                    one for one in results if which == (one.case.simulator, one.case.cause, one.case.extent)
                ]
                name = cause.value if extent is Extent.RANK else f"{cause.value}: {extent.value}"
                if some:
                    lines.append(_row([simulator.value, name, *_counts(some)]))
    causes = [one for one in results if one.case.cause is not Cause.NONE]
    healthy = [one for one in results if one.case.cause is Cause.NONE]
    lines.append(_row(["both", "all causes", *_counts(causes)]))
    lines.append(_row(["both", Cause.NONE.value, *_counts(healthy)]))
    impossible = sum(one.impossible for one in results)
    if impossible:
        lines += ["", f"{impossible} draws are no runs: their cause does not matter however strong it is."]
    return "\n".join(lines) + "\n"


def _counts(results: Sequence[Scored]) -> list[str]:
    some = [one for one in results if not one.impossible]
    late = [one for one in some if one.case.cause is not Cause.NONE]
    return [
        str(len(some)),
        _part([one.cause_right for one in some]),
        _part([one.rank_right for one in some]),
        _part([one.wait_right for one in late]),
        _part([one.win_right for one in late]),
    ]


def _part(right: Sequence[bool]) -> str:
    return f"{sum(right) / len(right) * 100:.1f} % ({sum(right)} of {len(right)})" if right else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def wrong_ones(results: Sequence[Scored]) -> Iterator[str]:
    """A line for every run of which something is wrong."""
    for one in results:
        late = one.case.cause is not Cause.NONE
        if one.impossible or (one.rank_right and not late):
            continue
        if one.rank_right and one.wait_right and one.win_right:
            continue
        yield wrong(one)


def wrong(one: Scored) -> str:
    """What was found of a run, and what is true."""
    case = one.case
    what = f"{case.cause.value} {case.extent.value}"
    name = f"{case.simulator.value} {what} {case.seed} of {case.rank_count} {list(one.true_whom)}"
    if one.error:
        return f"{name}: {one.error} ({one.made})"
    found = "" if one.rank_right else f"found {one.cause} {list(one.whom)} {one.why}; "
    wait = "none" if one.wait_ns is None else f"{one.wait_ns / 1e6:.2f}"
    saved = "none" if one.saved_frac is None else f"{one.saved_frac:.1%}"
    mark = ("" if one.wait_right else " WAIT") + ("" if one.win_right else " WIN")
    return (
        f"{name}: {found}wait {wait} of {one.true_wait_ns / 1e6:.2f} ms, win {saved} of "
        f"{one.true_saved_frac:.1%}{mark} {' '.join(one.problems)} ({one.made})"
    )
