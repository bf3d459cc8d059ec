"""Sets of recordings: what belongs together, what does not, and that their order says nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import Work, analyse_run, many, together
from traces.missing import Missing
from traces.ranks.replay.run import measure_run
from traces.ranks.summaries.codec import encode
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import RankSummary
from traces.sections.cause import Cause
from traces.sections.cause import ProblemKind as Kind
from traces.sections.run import Late


def run_of(count: int = 4, slow: int = 2) -> list[RankSummary]:
    works = [[Work(compute=130 if rank == slow else 100, host=2)] * 40 for rank in range(count)]
    kernels = [[13.0, 26.0] if rank == slow else [10.0, 20.0] for rank in range(count)]
    return together(works, per_step=10, kernels_us=kernels)


def kinds(ranks: Sequence[RankSummary]) -> dict[Kind, tuple[int, ...]]:
    return {problem.kind: problem.indices for problem in measure_run(ranks).together.problems}


@given(st.permutations(range(5)))
def test_the_order_of_recordings_does_not_matter(order: list[int]) -> None:
    ranks = run_of(5)
    plain, turned = analyse_run(ranks), analyse_run([ranks[place] for place in order])
    indices = measure_run([ranks[place] for place in order]).together.indices
    assert [order[index] for index in indices] == list(range(5))
    assert plain == turned


def test_what_is_odd_about_recordings_of_one_run_hides_nobody() -> None:
    """Three recordings are of three versions, and one breaks off: as many oddities as there are ranks."""
    several = [
        replace(each, identity=replace(each.identity, version=f"3.{place}"))
        for place, each in enumerate(run_of(3, slow=1))
    ]
    several[2] = replace(several[2], instances=several[2].instances.take(np.arange(30)))
    assert kinds(several) == {Kind.TRUNCATED: (2,), Kind.MIXED_VERSIONS: (1, 2)}
    assert isinstance(analyse_run(several).late, Late)


def test_of_two_runs_with_as_many_recordings_each_nobody_is_named_late() -> None:
    def begun(rank: RankSummary, more: int) -> RankSummary:
        start_ns = 10**18 + more * 3_600_000_000_000
        identity = replace(
            rank.identity, rank=None, recording=rank.identity.recording + more, session_start_ns=start_ns
        )
        return replace(rank, identity=identity)

    several = [begun(rank, more) for more in (0, 50) for rank in run_of()]
    run = analyse_run(several)
    assert kinds(several)[Kind.MIXED_RUNS] == (4, 5, 6, 7)
    assert isinstance(run.late, Missing)
    assert "several runs" in run.late.reason


def calls_for(count: int) -> int:
    """How many calls of Python functions an analysis takes."""
    blobs = [encode(one) for one in many(count, group_size=8, step_count=3, per_step=4, late=5)]
    seen: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        seen[event] += 1

    sys.setprofile(profile)
    try:
        run = analyse_run([decode(blob, "a") for blob in blobs])
    finally:
        sys.setprofile(None)
    assert isinstance(run.late, Late)
    assert (run.late.cause, run.late.rank) == (Cause.SLOW_DEVICE, 5)
    return seen["call"] + seen["c_call"]


def test_twice_the_ranks_take_at_most_twice_the_calls() -> None:
    calls_for(64)  # imports
    small, large = calls_for(256), calls_for(512)
    assert large <= 2.1 * small
    assert large <= 580 * 512
