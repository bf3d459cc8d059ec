"""How much longer a step is, by one run of base or several, and by the whole recording."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heuristics.comparison import size as rules
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.gate import Asked, gate_of
from heuristics.comparison.size import Judged, judge_size, measure_size
from heuristics.comparison.whole_range import judge_whole, whole_range
from heuristics.result.compared import Comparable, ComparedSize, ComparisonVerdict, Difference
from heuristics.result.compared_runs import Whole
from tests.doubles.comparison import log, rank, result
from traces.missing import Missing, known
from traces.sections.rank import Rank
from traces.sections.steps import Dropped, Outside

MS = 1_000_000
YES = Comparable("yes", ())
NO = Comparable("no", (Difference("routing", "forced", "free", "no", "tokens are spread differently"),))


def steps(*lengths_ms: float) -> Rank:
    return rank(lengths_ns=tuple(round(one * MS) for one in lengths_ms))


def sized(low_ms: float, high_ms: float, count: int = 10) -> ComparedSize:
    """Base 100 ms in the mean; new in the middle of the interval; both half as long in the middle one."""
    delta_ns = round((low_ms + high_ms) / 2 * MS)
    new_ns = 100 * MS + delta_ns
    ends, parts = (round(low_ms * MS), round(high_ms * MS)), (low_ms / 100, high_ms / 100)
    means, medians = (100 * MS, new_ns), (50 * MS, new_ns // 2)
    how = (0.95, "bootstrap of single values")
    return ComparedSize(
        "trace", count, count, *means, *medians, delta_ns, delta_ns / 1e8, *ends, *parts, *how
    )


def logged(of: Rank, *lengths_ns: int) -> Subject:
    """A rank, and a log of its run where there are iterations."""
    return Subject(result(of, log=log(*lengths_ns) if lengths_ns else None), of)


def measured(base: Subject, new: Subject, comparable: Comparable = YES) -> tuple[ComparedSize, Judged]:
    size = measure_size(base, new)
    return size, judge_size(size, comparable, base, new)


def judged_steps(base: Rank, new: Rank, comparable: Comparable = YES) -> tuple[ComparedSize, Judged]:
    return measured(logged(base), logged(new), comparable)


def judged_at(low_ms: float, high_ms: float) -> Judged:
    return judge_size(sized(low_ms, high_ms), YES, logged(steps(100, 100)), logged(steps(100, 101)))


def test_without_logs_the_size_is_the_difference_of_means_over_used_steps() -> None:
    size, _ = judged_steps(steps(100, 101, 105), steps(110, 110))
    assert (size.source, size.base_count, size.new_count) == ("trace", 3, 2)
    assert (size.base_mean_ns, size.new_mean_ns, size.delta_ns) == (102 * MS, 110 * MS, 8 * MS)
    assert (size.base_median_ns, size.new_median_ns) == (101 * MS, 110 * MS)
    assert size.ends_ns is None
    assert measure_size(logged(steps(0, 0)), logged(steps(1, 1))).delta_frac == 0
    assert rules.part_in_words(1.0, 0) == "an unknown share"
    late = replace(steps(1, 1).steps, slow=(7, 8, 9), dropped=(Dropped(7, 0, MS, "hiccup"),) * 3)
    assert measure_size(logged(steps(1, 1)), logged(replace(steps(1, 1), steps=late))).ends_ns is None


def test_three_steps_a_side_of_which_none_takes_a_hundredth_longer_show_no_change() -> None:
    base = steps(100, 100.5, 101)
    assert judged_steps(base, steps(100.2, 100.4, 101))[1].verdict == "no_change"
    for other in (steps(100.2, 100.4, 101.1), steps(100.2, 100.4)):
        assert judged_steps(base, other)[1].verdict == "undecided"


def test_logs_of_both_sides_give_the_size_whatever_the_steps_say() -> None:
    size, _ = measured(logged(steps(100, 100), *(90, 92) * 4), logged(steps(150, 150), *(100,) * 8))
    assert (size.source, size.base_count, size.new_count) == ("log", 8, 8)
    assert (size.base_mean_ns, size.new_mean_ns, size.delta_ns) == (91, 100, 9)
    assert size.ends_ns is not None


@pytest.mark.parametrize("count", [0, 7])
def test_a_log_of_one_side_alone_gives_no_size(count: int) -> None:
    size, _ = measured(logged(steps(10, 10), *(100,) * 300), logged(steps(10, 10), *(100,) * count))
    assert size.source == "trace"
    base, new = logged(steps(1), *(100,) * 300), logged(steps(2), *(100,) * count)
    held = f"the logs hold 300 iterations after their start in base, {count} in new"
    assert f"{held}, where 8 a side are needed" in judge_size(size, YES, base, new).because


def test_a_window_is_no_step() -> None:
    window, stepped = rank(lengths_ns=(900,), source="none"), rank(lengths_ns=(100,) * 9)
    size, judged = judged_steps(window, stepped)
    assert (size.base_count, size.base_mean_ns, size.new_count) == (0, 900, 9)
    assert judged.verdict == "undecided"
    assert judged.because[0].startswith("no steps in base, 9 in new: fewer than 4")
    assert judged.because[-1] == "no steps were found in base: its figure is that of one window"


def test_that_no_difference_could_have_been_certain_is_said_of_so_few_steps_alone() -> None:
    for counts, told in {(3, 3): True, (3, 5): False, (1, 38): True, (1, 39): False, (0, 9): False}.items():
        sides = [logged(steps(*[1] * count) if count else rank(source="none")) for count in counts]
        for base, new in (sides, sides[::-1]):
            lacking = "".join(rules._lacking(measure_size(base, new), base, new))
            assert ("could have been certain" in lacking) is told


def test_runs_that_cannot_be_compared_get_no_verdict_but_their_figures() -> None:
    _, judged = judged_steps(steps(*[99] * 7, 107), steps(*[198] * 7, 214), NO)
    assert judged.verdict == "not_comparable"
    assert judged.because[0] == "routing: tokens are spread differently"
    assert "100 ms in base, 200 ms in new: +100 ms, +100 %" in judged.because[1]
    without = rules.judge(None, NO, rules.Beside(("told",), (), "", str, ""))
    assert without.because == ("routing: tokens are spread differently", "told")


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_run_against_itself_is_no_change_however_few_its_steps(count: int) -> None:
    size, judged = judged_steps(steps(*range(100, 100 + count)), steps(*range(100, 100 + count)))
    assert (judged.verdict, judged.same, judged.record) == ("no_change", True, "")
    assert gate_of(size, judged, Asked(0.0)).state == "passed"


def test_one_recording_with_logs_that_differ_is_decided_by_the_logs() -> None:
    same = steps(100, 100)
    _, judged = measured(logged(same, *(100,) * 8), logged(same, *(120,) * 8))
    assert judged.verdict == "regression"


def test_profiled_steps_are_held_against_logged_ones() -> None:
    """By the logs 100 and 105 ms; base takes 110 ms where it is profiled."""
    base = logged(steps(110, 110), *[100 * MS] * 8)
    for new, part, said in (
        (120, "14", "+10.0 ms, outside"),
        (108, "2.9", "-2.00 ms, the other"),
        (115, "9.5", ""),
    ):
        of_log = *(104 * MS,) * 4, *(106 * MS,) * 4  # the interval goes from 4.03 to 5.97 ms
        because = measured(base, logged(steps(*[new] * 3), *of_log))[1].because
        beside = [one for one in because if "profiled steps" in one]
        assert f"+10 % in base, +{part} % in new" in beside[0]
        assert [one.startswith(f"the 2 and 3 profiled steps differ by {said}") for one in beside[1:]] == [
            True
        ] * bool(said)
    same = measured(base, logged(steps(120, 120), *[100 * MS] * 8))[1].because
    assert any("steps differ by +10.0 ms, outside" in one for one in same)
    first, *_ = rules._traces_beside_logs(replace(sized(1, 3), source="log"), steps(55), steps(51))
    assert "+10 % in base, 0 % in new" in first  # by the medians, 50 and 51 ms
    window = logged(rank(lengths_ns=(120 * MS,), source="none"), *[105 * MS] * 8)
    for sides in ((base, window), (window, base)):
        assert not any("profiled" in one for one in measured(*sides)[1].because)


def test_a_few_steps_against_many_say_where_only_their_own_scatter_forbids_a_verdict() -> None:
    many = [100 + (place % 5) / 10 for place in range(58)]
    size, judged = judged_steps(steps(*many), steps(101, 103, 109, 122))
    assert (judged.verdict, size.p_frac) == ("undecided", 2 / 557_845)
    assert judged.because[2].startswith("the sides have other counts, and by the scatter of each side's own")


def test_of_a_small_p_and_an_interval_that_holds_zero_unlike_scatter_is_said() -> None:
    cases = {(0, 9): (0.05, 1), (-9, 0): (0.05, 1), (1, 9): (0.05, 0), (-9, -1): (0.05, 0)}
    cases |= {(-9, 9): (0.075, 0), (-8, 8): (1.0, 0)}
    for ends, (p, told) in cases.items():
        first, *more = rules._by_chance(replace(sized(-1, 1), p_frac=p), ends)
        spelled = {0.05: "1/20 (5.0 %)", 0.075: "7.5 %", 1.0: "100 %"}[p]
        assert (first.rpartition(" = ")[2], len(more)) == (spelled, told)


def test_the_verdict_is_where_the_interval_lies_and_says_how_many_steps_would_decide() -> None:
    cases: list[tuple[float, float, str, str, str]] = [
        (0.01, 6, "regression", "the whole interval is above zero", ""),
        (-6, -4, "improvement", "the whole interval is below zero", ""),
        (0, 6, "undecided", "changes of up to 6.0 %", "record "),
        (-6, 0, "undecided", "changes of up to 6.2 %", "record "),
        (-0.3, 0.5, "no_change", "the interval holds zero, within 0.5 % of a step", ""),
        # one per cent of the shorter step
        (-1, 1, "no_change", "within 1.0 % of a step", ""),
        (-1.02, 1, "undecided", "changes of up to 1.0 %, more than 1 %", "record "),
        (-2.236, 2.236, "undecided", "", "record 50 steps or more"),
        (-2.24, 2.24, "undecided", "", "about 51 steps a side would decide it: give the training"),
    ]
    for low, high, verdict, because, record in cases:
        judged = judged_at(low, high)
        assert judged.verdict == verdict
        assert because in judged.because[0]
        assert ("from step to step" in judged.because[-1]) == (verdict in ("regression", "improvement"))
        assert judged.record.startswith(record)
        assert bool(judged.record) == bool(record)
    assert "about 0.400 ms per step, 0.4 %" in judged_at(-0.3, 0.5).because[1]
    for shorter in ("base_mean_ns", "new_mean_ns"):  # of 50 ms half a ms: of ten steps 4 x 4 times as many
        assert rules._needed(replace(sized(-2, 2), **{shorter: 50 * MS}), (-2 * MS, 2 * MS)) == 160


def test_the_gate_trips_where_even_the_lower_end_is_above_the_limit() -> None:
    cases: list[tuple[float, float, str, str]] = [
        (3.1, 6, "tripped", "the lower end of the interval, +3.1 %, is above the limit of 3 %"),
        (3, 6, "passed", "+3.0 % to +6.0 %, holds the limit of 3 %"),
        (2, 6, "passed", "+2.0 % to +6.0 %, holds the limit of 3 %"),
        (-2, 6, "undecided", "holds"),
        (-1, 2, "passed", "the upper end of the interval, +2.0 %, is not above the limit of 3 %"),
        (-1, 3, "passed", "the upper end of the interval, +3.0 %, is not above the limit of 3 %"),
    ]
    for low, high, state, because in cases:
        gate = gate_of(sized(low, high), judged_at(low, high), Asked(0.03))
        assert (gate.state, gate.limit_frac) == (state, 0.03)
        assert because in gate.because


def test_a_gate_that_cannot_be_judged_is_undecided() -> None:
    few, judged = judged_steps(steps(100, 100), steps(200, 200))
    gate = gate_of(few, judged, Asked(0.03))
    assert gate.state == "undecided"
    assert gate.because.startswith("2 steps in base, 2 in new, where 4 a side are needed")
    many, differ = judged_steps(steps(*[100] * 8), steps(*[200] * 8), NO)
    other = gate_of(many, differ, Asked(0.03, "fail", "pass"))
    assert (other.state, other.answer) == ("undecided", "pass")
    assert gate_of(None, Judged("undecided", ("why", "more"), ""), Asked(0.03)).because == "why"


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
    steps = replace(plain.steps, dropped=(*slow, *warm), slow=tuple(one.index for one in slow),
        warm_up=tuple(one.index for one in warm), median_ns=used_s[0] * S,
        outside_ns=Outside((before_s + warm_s) * S, between_s * S, after_s * S))  # fmt: skip
    return replace(plain, steps=steps)


def whole_of(base: Rank, new: Rank) -> Whole:
    found = known(whole_range(base, new))
    assert found is not None
    return found


def said(base: Rank, new: Rank, verdict: ComparisonVerdict) -> str:
    judged = Judged(verdict, ("the interval",), "")
    return judge_whole(judged, whole_range(base, new), ended=False).because[0]


def test_every_second_that_was_recorded_is_in_one_row() -> None:
    base = recorded(2, 2, before_s=1, after_s=3, slow_s=7, warm_s=5)
    whole = whole_of(base, recorded(1, 1, between_s=4))
    assert [(one.part, one.base_ns // S, one.new_ns // S, one.base_count) for one in whole.rows] == [
        ("steps", 2 + 2 + 2 + 2, 2, 4),  # two used ones, and what a usual step takes of the two others
        *(("warm_up", 5 - 2, 0, 1), ("hiccups", 7 - 2, 0, 1), ("before", 1, 0, None)),
        *(("between", 0, 4, None), ("after", 3, 0, None)),
    ]
    assert (whole.base_ns // S, whole.new_ns // S, whole.delta_ns // S) == (20, 6, -14)


def test_steps_that_got_shorter_in_a_run_that_did_not_are_said_with_where_the_time_went() -> None:
    """Of 4 s more before the first step, 5 between them, 3 after the last and 2 of a hiccup, the most."""
    base = recorded(3, 3, 3, 3, before_s=1)
    new = recorded(2, 2, 2, before_s=5, between_s=5, after_s=3, slow_s=4)
    assert said(base, new, "improvement") == (
        "the steps alone take less; all that was recorded takes longer, 13.0 s -> 23.0 s (+10.0 s): "
        "+5.00 s between steps, +4.00 s before the first step, +3.00 s after the last step"
    )
    assert said(new, base, "regression").startswith(
        "the steps alone take longer; all that was recorded takes"
    )


def test_where_both_go_one_way_or_other_steps_were_recorded_nothing_is_said() -> None:
    assert said(recorded(3, 3), recorded(1, 1, after_s=1), "improvement") == "the interval"
    assert said(recorded(3, 3, after_s=2), recorded(4, 4), "regression") == "the interval"  # as long in all
    assert said(recorded(3, 3, after_s=4), recorded(2, 2, 2, 2), "regression") == "the interval"
    assert said(recorded(3, 3), recorded(2, 2, after_s=1), "improvement") == "the interval"
    assert said(recorded(3, 3), recorded(1, 1, 1, after_s=9), "improvement") == "the interval"
    assert said(recorded(10, 10), recorded(5, 5, after_s=11), "undecided") == "the interval"
    assert "6.00 s -> 9.00 s (+3.00 s)" in said(recorded(3, 3), recorded(2, 2, after_s=5), "undecided")
    assert "9.00 s -> 6.00 s (-3.00 s)" in said(recorded(2, 2, after_s=5), recorded(3, 3), "undecided")


def test_a_gap_of_a_tenth_beside_the_steps_is_said_where_it_makes_most_of_the_difference() -> None:
    """20 s in steps; with 2 s before them a tenth more."""
    late = "takes 20.0 s -> 22.0 s (+2.00 s), much of it beside the steps: +2.00 s before the first step"
    assert said(recorded(10, 10), recorded(10, 10, before_s=2), "no_change").endswith(late)
    assert said(recorded(2, 2), recorded(3, 3, before_s=1), "regression") == "the interval"
    assert "(+4.00 s)" in said(recorded(2, 2), recorded(3, 3, before_s=2), "regression")
    assert said(recorded(2, 2), recorded(3, 3, before_s=9), "not_comparable") == "the interval"


def test_whole_programs_that_repeat_more_often_take_more() -> None:
    found = judge_whole(
        Judged("undecided", (), ""), whole_range(recorded(3, 3), recorded(3, 3, 3)), ended=True
    )
    assert found.because == (
        "the whole programs take 6.00 s and 9.00 s, as one repeats 2 times and the other 3",
    )


def test_hiccups_are_said_where_the_steps_show_no_change() -> None:
    assert said(recorded(100, 100), recorded(100, slow_s=102), "no_change") == "the interval"
    base, new = recorded(10, 10), recorded(10, slow_s=12)
    assert (
        said(base, new, "no_change")
        == "hiccups, which no step counts, differ by +2.00 s in all: 0 in base, 1 in new"
    )


def test_without_steps_or_in_an_earlier_result_the_whole_is_missing() -> None:
    window = rank(lengths_ns=(900,), source="none")
    assert isinstance(whole_range(window, recorded(1)), Missing)
    assert said(window, recorded(1), "undecided") == "the interval"
    assert isinstance(whole_range(recorded(1), window), Missing)
    for lacking in ("outside_ns", "median_ns"):
        earlier = replace(recorded(1), steps=replace(recorded(1).steps, **{lacking: None}))
        assert isinstance(whole_range(earlier, recorded(1)), Missing)
