from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from heuristics.comparison.between_runs import rank_like, why_no_run
from heuristics.comparison.comparison import compare
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.same_work import same_recording
from heuristics.comparison.size import judge_size, measure_size
from heuristics.result.compared import Comparable, ComparedSize, Difference
from heuristics.result.result import Result
from tests.doubles.comparison import log, rank, result, row
from traces.missing import gap
from traces.sections.rank import Rank

MS = 1_000_000
STUDENT = {2: 12.7062, 3: 4.3027, 5: 2.7764}
"""At 97.5 %, by runs of base: one degree of freedom less."""


def steps(*lengths_ms: float, trace: str = "run.sqlite") -> Rank:
    return rank(lengths_ns=tuple(round(one * MS) for one in lengths_ms), trace=trace)


def side(of: Rank, *logged_ns: int) -> Subject:
    return Subject(result(of, log=log(*logged_ns) if logged_ns else None), of)


def run(middle_ms: float, name: str = "run.sqlite") -> Rank:
    """Ten steps, 1 ms around their middle."""
    return steps(*[middle_ms - 1, middle_ms + 1] * 5, trace=name)


def sized(new: Rank, *bases: Rank) -> ComparedSize:
    base, *more = map(side, bases)
    return measure_size(base, side(new), more)


def test_base_s_mean_is_that_of_its_runs_and_its_recordings_are_named() -> None:
    size = sized(run(130), run(100, "a"), run(104, "b"), run(108, "c"))
    assert (size.base_mean_ns, size.delta_ns) == (104 * MS, 26 * MS)
    assert size.between_runs is not None
    assert [(one.name, one.count, one.mean_ns // MS) for one in size.between_runs.runs] == [("a", 10, 100),
        ("b", 10, 104), ("c", 10, 108)]  # fmt: skip
    assert size.between_runs.std_ns == 4 * MS


def test_the_interval_is_student_s_where_runs_differ_more_than_their_steps() -> None:
    size = sized(run(130), run(100), run(104), run(108))
    half_ns = STUDENT[3] * 4 * MS * (1 + 1 / 3) ** 0.5
    assert size.ends_ns is not None
    assert size.ends_ns[0] == pytest.approx(26 * MS - half_ns, rel=1e-4)
    assert size.ends_ns[1] == pytest.approx(26 * MS + half_ns, rel=1e-4)
    assert str(size.method).endswith("; Student's t over 3 recordings of base")


def test_runs_that_lie_close_together_by_luck_take_nothing_from_what_the_steps_say() -> None:
    alone, beside = sized(run(103), run(100)), sized(run(103), run(100), run(100))
    assert (alone.ends_ns, beside.between_runs is None) == (beside.ends_ns, False)


def test_a_difference_that_runs_of_base_show_among_themselves_is_no_regression() -> None:
    base, new, more = side(run(100)), side(run(106)), [side(run(104)), side(run(108))]
    yes = Comparable("yes", ())
    assert judge_size(measure_size(base, new), yes, base, new).verdict == "regression"
    judged = judge_size(measure_size(base, new, more), yes, base, new)
    assert judged.verdict == "undecided"
    assert any("3 recordings of base differ by 4.00 ms" in one for one in judged.because)
    assert judged.record.endswith("--more-base FILE")


def test_logs_give_the_runs_where_every_side_has_one() -> None:
    logged = [side(run(100), *(one * MS, (one + 2) * MS) * 4) for one in (89, 91, 93)]
    new = side(run(100), *(99 * MS, 101 * MS) * 4)
    size = measure_size(logged[0], new, logged[1:])
    assert (size.source, size.base_mean_ns, size.delta_ns) == ("log", 92 * MS, 8 * MS)
    assert measure_size(logged[0], new, [side(run(104))]).source == "trace"


def test_what_is_no_further_run_of_base_is_left_out_and_named() -> None:
    def made(length_ns: int, **how: Any) -> Result:
        return result(rank(row("compute.gemm", *[length_ns] * 9), **how))

    base, again, window = made(100, trace="a"), made(100, trace="a"), made(900, trace="window", source="none")
    other = made(104, trace="other", gpu="NVIDIA A100-SXM4-80GB")
    found = compare(base, made(120), more_base=[again, other, window])
    assert found.size.between_runs is None
    named = [one.partition(": ")[0] for one in found.warnings]
    assert named == ["--more-base a", "--more-base other", "--more-base window"]
    assert "it is the recording of another one" in found.warnings[0]


def test_a_further_run_is_compared_by_the_same_rank_and_may_have_the_steps_of_another_log() -> None:
    base, again = (result(*(replace(run(ms), rank=place, device=place) for place, ms in enumerate(lengths)))
                   for lengths in ((90, 100), (91, 101)))  # fmt: skip
    for place in (0, 1):
        assert rank_like(Subject(base, base.ranks[place]), again, None) == again.ranks[place]
    assert rank_like(Subject(base, base.ranks[0]), again, 1) == again.ranks[1]
    shifted = result(*(replace(run(90), rank=place) for place in (1, 2)))  # has no rank 0
    more = result(*(replace(run(90), rank=place) for place in (0, 1, 2)))
    assert rank_like(Subject(more, more.ranks[0]), shifted, None) == shifted.ranks[0]
    yes, others = Comparable("yes", ()), [side(run(90)), side(run(100), *[MS] * 8)]
    assert why_no_run(side(run(100)), others, yes) == ""
    assert "of another" in why_no_run(side(run(100), *[MS] * 8), others, yes)
    assert "steps" in why_no_run(side(rank(lengths_ns=(900,), source="none")), others, yes)
    rows = (Difference("GPU", "a", "b", "no", ""), Difference("rank", "0", "1", "with_differences", ""))
    why = why_no_run(side(run(100)), others, Comparable("no", rows))
    assert ("GPU" in why, "rank" in why) == (True, False)


def test_buckets_tell_recordings_of_as_long_steps_apart() -> None:
    rows = ("compute.gemm", "exposed_comm.tp", "exposed_copy.memset", "idle.trailing")
    sides = [rank(row(name, 10, 10)) for name in rows]
    assert [[same_recording(one, other) for other in sides] for one in sides] == np.eye(4).tolist()
    untold = {"exposed_comm": gap("no names", "")}  # copies between GPUs are communication of the same length
    one, other = (rank(row(name, 10, 10), budget_ns=untold) for name in rows[1:3])
    assert not same_recording(one, other)
