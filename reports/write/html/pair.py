"""Any two ranks side by side: figures of each, as texts and as parts of the largest of all ranks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.run import short_name, shown_ranks
from reports.write.plain import plain
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.run import RankInRun, Run
from traces.spelling import milliseconds, rounded

_RANKS: Final = 256
"""Ranks that can be chosen."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of all ranks that can be chosen, and the places of the two that are shown first."""

    names: tuple[str, ...]
    figures: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    chosen: tuple[int, int]
    left_out: int

    @property
    def data(self) -> dict[str, object]:
        """What the script of the page needs."""
        return {"texts": self.texts, "shares": self.shares}


def pair_of(result: Result) -> Pair | None:
    """The figures of each rank; None of one rank. Those that are late stand first."""
    run = result.run
    if run is UNSET or len(run.ranks) < 2:
        return None
    shown = shown_ranks(run, _RANKS)
    rows = [dict(_figures(result.ranks[one.index], one)) for one in shown]
    names = tuple(rows[0])
    largest = {name: max((row[name] or 0.0 for row in rows), default=0.0) for name in names}
    return Pair(
        names=tuple(plain(short_name(result, one.index)) for one in shown),
        figures=names,
        texts=tuple(tuple(_text(name, row[name]) for name in names) for row in rows),
        shares=tuple(
            tuple(round((row[name] or 0.0) / largest[name], 4) if largest[name] else 0.0 for name in names)
            for row in rows
        ),
        chosen=_first_two(run, shown),
        left_out=len(run.ranks) - len(shown),
    )


_TIMES: Final = "kernels, times those of like ranks"


def _figures(rank: Rank, one: RankInRun) -> Iterator[tuple[str, float | None]]:
    """What a mean step of a rank is made of; None where it is unknown."""
    steps, budget = max(1, len(rank.steps.used)), rank.budget_ns
    exposed_ns = known(budget.exposed_comm)
    yield "step, ms", known(one.step_ns)
    yield "compute, ms", budget.compute / steps
    yield "exposed communication, ms", None if exposed_ns is None else exposed_ns / steps
    yield "exposed copies, ms", budget.exposed_copy / steps
    yield "nothing ran, ms", budget.idle / steps
    yield "waited for others, ms", one.waited_ns
    yield "others waited for it, ms", known(one.caused_ns)
    yield _TIMES, known(one.device_factor)


def _text(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return rounded(value) if name == _TIMES else milliseconds(value)


def _first_two(run: Run, shown: list[RankInRun]) -> tuple[int, int]:
    """The late rank, or the one that others waited for the most; then one like it, that waited most."""
    late = known(run.late)
    places = range(len(shown))
    first = max(
        places,
        key=lambda place: (
            late is not None and shown[place].index == late.index,
            known(shown[place].caused_ns) or 0,
        ),
    )
    others = [place for place in places if place != first]
    second = max(others, key=lambda place: (shown[place].group == shown[first].group, shown[place].waited_ns))
    return first, second
