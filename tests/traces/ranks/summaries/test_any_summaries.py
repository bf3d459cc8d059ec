"""Whatever summaries hold, a run of them is analysed without an error, and says nothing it cannot know."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heuristics.late.run import judge, run_of
from tests.recordings.ranks import ALIKE, array, identity
from traces.arrays import IntArray
from traces.missing import Missing
from traces.ranks.summaries.codec import encode
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import (
    ExpertWork,
    Fingerprint,
    Group,
    GroupSource,
    Instances,
    KernelTimes,
    Messages,
    Peers,
    RankSummary,
    StepParts,
)

TIMES = st.one_of(st.integers(0, 50), st.integers(0, 10**9), st.sampled_from([0, 1 << 60, -(1 << 59)]))


@st.composite
def columns(draw: st.DrawFn, count: int, times: bool = False) -> IntArray:
    each = TIMES if times else st.integers(-1, 3)
    return array(draw(st.lists(each, min_size=count, max_size=count)))


@st.composite
def summaries(draw: st.DrawFn) -> RankSummary:
    rank = draw(st.one_of(st.none(), st.integers(0, 5)))
    several = draw(st.integers(0, 3))
    groups = tuple(
        Group(
            draw(st.sampled_from(GroupSource)),
            draw(st.integers(0, 2)),
            draw(st.sampled_from([None, 2, 3])),
            peer=1,
        )
        for _ in range(several)
    )
    count = draw(st.integers(0, 6)) if several else 0
    steps = draw(st.integers(0, 3))
    start = np.sort(draw(columns(count, times=True)))
    rows = Instances(
        array(draw(st.lists(st.integers(0, max(0, several - 1)), min_size=count, max_size=count))),
        draw(columns(count)),
        np.clip(draw(columns(count)), 0, 9),
        np.clip(draw(columns(count)), -1, 8),
        draw(columns(count)),
        np.clip(draw(columns(count)), -1, steps - 1),
        start,
        start + np.abs(draw(columns(count, times=True))) // 4,
        *(draw(columns(count)) for _ in range(5)),
    )
    begin = np.sort(draw(columns(steps, times=True)))
    parts = StepParts(begin, begin + draw(columns(steps)) + 1, *(draw(columns(steps)) for _ in range(6)))
    kinds = draw(st.integers(0, 2))
    times = KernelTimes(*(array(range(kinds)) for _ in fields(KernelTimes)))
    alike = draw(st.sampled_from([ALIKE, Fingerprint(0, 0, False, True, False)]))
    who = replace(
        identity(rank, draw(st.sampled_from([None, 2, 6]))),
        recording=draw(st.integers(0, 9)),
        session_start_ns=draw(st.sampled_from([None, 0, 10**18])),
        clock=draw(st.integers(0, 2)),
        process=draw(st.sampled_from([None, 1])),
    )
    told = count if draw(st.booleans()) else 0
    messages = Messages(*(draw(columns(told)) for _ in fields(Messages)))
    peers = draw(st.integers(0, 2))
    sent = (np.abs(draw(columns(peers))) for _ in range(2))
    with_peers = Peers(draw(columns(peers)), *(draw(columns(peers)) for _ in range(3)), *sent)
    worked = draw(st.integers(0, 4)) if steps else 0
    cells = np.clip(draw(columns(worked)), 0, steps - 1), np.abs(draw(columns(worked)))
    experts = ExpertWork(*cells, np.abs(draw(columns(worked))))
    return RankSummary(
        who, alike, parts, groups, rows, times, messages=messages, peers=with_peers, experts=experts
    )


@given(st.lists(summaries(), max_size=5))
def test_any_summaries_make_a_run(given: list[RankSummary]) -> None:
    judged = judge([decode(encode(one), "a") for one in given])
    run, together = run_of(judged, ["a"] * len(given)), judged.measured.together
    assert len(run.ranks) == len({*together.indices})
    left_out = {index for problem in together.problems if problem.left_out for index in problem.indices}
    assert {*together.indices} | left_out == set(range(len(given)))
    assert run.clocks.aligned or isinstance(run.late, Missing)
