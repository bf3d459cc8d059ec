from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from heuristics.comparison.size import Judged
from heuristics.comparison.whole_range import judge_whole, whole_range
from heuristics.result.compared import ComparisonVerdict
from heuristics.result.compared_runs import Whole
from tests.doubles.comparison import rank
from traces.missing import Missing, known
from traces.sections.rank import Dropped, Outside, Rank

S = 1_000_000_000


def recorded(
    *used_s: int, before_s: int = 0, between_s: int = 0, after_s: int = 0, slow_s: int = 0, warm_s: int = 0
) -> Rank:
    """Steps by their lengths, their median first; a hiccup and a warm-up where they take any time.

    What is left out is no used step, so a result has the warm-up in the time before the first.
    """
    plain = rank(lengths_ns=tuple(one * S for one in used_s))
    slow = (Dropped(90, 0, slow_s * S, "hiccup"),) if slow_s else ()
    warm = (Dropped(91, 0, warm_s * S, "warm-up"),) if warm_s else ()
    steps = replace(
        plain.steps,
        dropped=(*slow, *warm),
        slow=tuple(one.index for one in slow),
        warm_up=tuple(one.index for one in warm),
        median_ns=used_s[0] * S,
        outside_ns=Outside((before_s + warm_s) * S, between_s * S, after_s * S),
    )
    return replace(plain, steps=steps)


def whole_of(base: Rank, new: Rank) -> Whole:
    found = known(whole_range(base, new))
    assert found is not None
    return found


def said(base: Rank, new: Rank, verdict: ComparisonVerdict) -> str:
    judged = judge_whole(Judged(verdict, ("the interval",), ""), whole_range(base, new))
    return judged.because[0]


def test_every_second_that_was_recorded_is_in_one_row() -> None:
    base = recorded(2, 2, before_s=1, after_s=3, slow_s=7, warm_s=5)
    whole = whole_of(base, recorded(1, 1, between_s=4))
    assert [(one.part, one.base_ns // S, one.new_ns // S, one.base_count) for one in whole.rows] == [
        ("steps", 2 + 2 + 2 + 2, 2, 4),  # two used ones, and what a usual step takes of the two others
        ("warm_up", 5 - 2, 0, 1),
        ("hiccups", 7 - 2, 0, 1),
        ("before", 1, 0, None),
        ("between", 0, 4, None),
        ("after", 3, 0, None),
    ]
    assert (whole.base_ns // S, whole.new_ns // S, whole.delta_ns // S) == (20, 6, -14)


seconds = some.integers(0, 50)
sides = some.builds(
    recorded,
    some.just(3),
    some.just(3),
    before_s=seconds,
    between_s=seconds,
    after_s=seconds,
    slow_s=some.sampled_from([0, 4, 30]),
    warm_s=some.sampled_from([0, 4, 30]),
)


@given(sides, sides)
def test_rows_add_up_and_swapped_sides_mirror(base: Rank, new: Rank) -> None:
    one, other = whole_of(base, new), whole_of(new, base)
    outside = base.steps.outside_ns
    assert outside is not None
    slow_ns = sum(step.end_ns for step in base.steps.dropped if step.index in base.steps.slow)
    assert one.base_ns == sum(base.lengths_ns) + slow_ns + outside.total_ns
    assert sum(row.delta_ns for row in one.rows) == one.delta_ns == one.new_ns - one.base_ns
    assert [row.delta_ns for row in one.rows] == [-row.delta_ns for row in other.rows]


def test_steps_that_got_shorter_in_a_run_that_did_not_are_said_with_where_the_time_went() -> None:
    base, new = recorded(3, 3, 3, before_s=1), recorded(2, 2, 2, before_s=3, after_s=2)
    assert said(base, new, "improvement") == (
        "the steps alone take less; all that was recorded takes longer, 10.0 s -> 11.0 s (+1.00 s): "
        "+2.00 s before the first step, +2.00 s after the last step"
    )
    assert said(new, base, "regression").startswith(
        "the steps alone take longer; all that was recorded takes"
    )


def test_where_both_go_one_way_or_other_steps_were_recorded_nothing_is_said() -> None:
    assert said(recorded(3, 3), recorded(2, 2, after_s=1), "improvement") == "the interval"
    assert said(recorded(3, 3), recorded(2, 2, 2, 2), "improvement") == "the interval"
    assert said(recorded(3, 3), recorded(2, 2, after_s=9), "undecided") == "the interval"


def test_hiccups_are_said_where_the_steps_show_no_change() -> None:
    base, new = recorded(10, 10), recorded(10, slow_s=12)
    assert (
        said(base, new, "no_change")
        == "hiccups, which no step counts, differ by +2.00 s in all: 0 in base, 1 in new"
    )


def test_without_steps_or_in_an_earlier_result_the_whole_is_missing() -> None:
    window = rank(lengths_ns=(900,), source="none")
    assert isinstance(whole_range(window, recorded(1)), Missing)
    assert isinstance(whole_range(recorded(1), window), Missing)
    assert isinstance(whole_range(rank(lengths_ns=(5, 5)), recorded(1)), Missing)
