"""Maps of ranks by step and two ranks side by side: what the page draws, and what it leaves out."""

from __future__ import annotations

from typing import Any

from heuristics.result.result import Result
from reports.content.analysis.called import short_name
from reports.content.names import plain
from reports.write.html.ranks import Map, Maps, heat_of, pair_of, step_maps_of
from tests.doubles.result import double
from traces.missing import Missing
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import RankInRun, Run

MS = 1_000_000


def result(count: int = 4, steps: int = 3, **fields: Any) -> Result:
    """Rank 1 is late: others wait 6 ms for it in each step, and each waits 2 ms."""
    figures = tuple(
        double(
            RankInRun,
            index=place,
            rank=place,
            step_ns=10 * MS,
            waited_ns=0 if place == 1 else 2 * MS,
            caused_ns=6 * MS if place == 1 else 0,
            device_factor=1.5 if place == 1 else 1.0,
            step_lengths_ns=tuple(10 * MS + step for step in range(steps)),
            waited_by_step_ns=(0 if place == 1 else 2 * MS,) * steps,
            caused_by_step_ns=(6 * MS if place == 1 else 0,) * steps,
        )
        for place in range(count)
    )
    late = {"cause": Cause.SLOW_DEVICE, "index": 1, "rank": 1, "wait_ns": 0, "cost_ns": 0}
    known = {"ranks": figures, "steps": steps, "steps_per_column": 1, "late": late}
    ranks = tuple(double(Rank, rank=place, device=place) for place in range(count))
    return double(Result, ranks=ranks, run=double(Run, **(known | fields)))


def by_step(shown: Result) -> Maps | None:
    assert isinstance(shown.run, Run)
    return step_maps_of(shown.run, lambda place: plain(short_name(shown, place)))


def maps(shown: Result) -> dict[str, Map]:
    found = by_step(shown)
    assert found is not None
    return {one.name: one for one in found.maps}


def test_each_map_has_a_row_a_rank_and_a_column_a_step_darker_where_it_is_more() -> None:
    found = maps(result())
    assert list(found) == ["waited", "caused waiting (late by compute)", "step"]
    waited, caused, step = found.values()
    assert [row.shades for row in waited.rows] == [("1.00",) * 3, ("0.00",) * 3, ("1.00",) * 3, ("1.00",) * 3]
    assert [row.shades[0] for row in caused.rows] == ["0.00", "1.00", "0.00", "0.00"]
    assert step.rows[0].shades == ("0.00", "0.50", "1.00")
    assert [row.late for row in waited.rows] == [False, True, False, False]
    assert caused.rows[1].said[0] == "rank 1, GPU 1, column 1: caused waiting (late by compute) 6.00 ms"


def test_an_unknown_step_has_no_shade_and_says_so() -> None:
    one = double(RankInRun, index=0, step_lengths_ns=(None, 5), waited_by_step_ns=(None, 1))
    other = double(RankInRun, index=1, step_lengths_ns=(4, 5), waited_by_step_ns=(2, 1))
    found = maps(result(2, ranks=(one, other)))["waited"]
    assert found.rows[0].shades == ("", "0.50")
    assert found.rows[0].said[0].endswith("waited unknown")


def test_without_one_clock_nobody_knows_who_caused_the_waiting() -> None:
    gap = Missing("", "no clock", "record more")
    ranks = tuple(
        double(RankInRun, index=place, step_lengths_ns=(1,), waited_by_step_ns=(1,), caused_by_step_ns=gap)
        for place in range(2)
    )
    assert list(maps(result(2, ranks=ranks))) == ["waited", "step"]


def test_many_ranks_are_left_out_and_counted_and_their_squares_have_no_words() -> None:
    found = by_step(result(40, 48))
    assert found is not None
    assert (len(found.maps[0].rows), found.left_out, found.columns) == (32, 8, 48)
    assert found.maps[0].rows[0].said == ()


def test_ranks_without_a_common_step_have_no_map() -> None:
    assert by_step(result(steps=0)) is None


def test_the_late_rank_and_one_like_it_are_side_by_side_first() -> None:
    found = pair_of(result())
    assert found is not None
    assert found.chosen == (1, 0)
    waited = found.figures.index("others waited for it, ms")
    assert [found.texts[place][waited] for place in found.chosen] == ["6.00", "0"]
    assert [found.shares[place][waited] for place in found.chosen] == [1.0, 0.0]


def test_columns_of_many_ranks_hold_several_and_show_the_largest_so_that_none_is_left_out() -> None:
    """Of 1,024 ranks each of 256 columns has four; rank 1, who is late, stands in the first."""
    shown = result(1024)
    assert isinstance(shown.run, Run)
    heat = heat_of(shown.run, lambda place: f"rank {place}")
    assert heat is not None
    assert (heat.columns, heat.left_out) == (256, 0)
    caused = heat.maps[2].rows[0]
    assert (caused.shades[0], {*caused.shades[1:]}) == ("1.000", {"0.000"})
    assert caused.said[0] == "rank 0 to rank 3: caused waiting 6.00 ms"
    assert heat.ticks[:3] == ((0, "0"), (16, "64"), (32, "128"))
    assert len(heat.ticks) == 16
