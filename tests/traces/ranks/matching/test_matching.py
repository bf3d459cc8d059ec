"""Collectives and messages of several ranks as instances, and slow ways between ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import Part, array, summary_of
from traces.names.kernels import COMM_KINDS
from traces.ranks.clocks.clock_fit import ClockFit
from traces.ranks.matching import communicators
from traces.ranks.matching.gathered import OnClock
from traces.ranks.matching.match import Matched, match, together
from traces.ranks.matching.messages import Exchanges
from traces.ranks.summaries.summary import Group, GroupSource, Operation, RankSummary, recorded_of

LENGTHS_US = (100, 130, 90, 250, 110, 75, 180, 95, 210, 140, 165, 88)
"""No rhythm: a shift by one is seen."""


def found(matched: Matched) -> list[tuple[int, list[int]]]:
    """Of each instance the sequence and the places."""
    ends = zip(matched.first[:-1], matched.first[1:], strict=True)
    return [
        (int(sequence), matched.place[begin:end].tolist())
        for sequence, (begin, end) in zip(matched.sequence, ends, strict=True)
    ]


def ended(at_us: Sequence[float], first: int = 0, group: int = 0) -> list[Part]:
    """Collectives of 10 us that end at these times, in order."""
    return [Part(group, first + number, end - 10, end) for number, end in enumerate(at_us)]


def ends_us(begin_us: float = 1000) -> list[float]:
    ends = [begin_us]
    for length in LENGTHS_US:
        ends.append(ends[-1] + length)
    return ends


def of_stage(rank: int | None, *peers: int | None) -> RankSummary:
    """A stage of a pipeline that names whom it exchanges messages with, of a communicator of all stages."""
    groups = [Group(GroupSource.PEER, 6, 2, peer=peer) for peer in peers]
    parts = [
        part for place in range(len(peers)) for part in ended([100.0 + place, 200.0 + place], group=place)
    ]
    return summary_of(rank, parts, groups)


def test_messages_that_name_the_peer_only_are_paired_by_the_order_of_ranks() -> None:
    stages = [of_stage(1, 0, 2), of_stage(0, 1), of_stage(16, 1)]
    assert sorted(places for _, places in found(match(stages))) == [[0, 1], [0, 1], [0, 2], [0, 2]]


@pytest.mark.parametrize("stages", [
    [of_stage(8, 1), of_stage(None, 0, 2), of_stage(16, 1)], [of_stage(8, 1), of_stage(16, 0, 2)],
    [of_stage(8, 1), of_stage(12, 2), of_stage(16, 1)], [of_stage(8, None), of_stage(12, None)],
])  # fmt: skip
def test_messages_are_paired_with_nobody_where_ranks_are_unknown_or_missing(
    stages: list[RankSummary],
) -> None:
    assert len(match(stages)) == 0


def test_a_number_that_comes_twice_counts_once() -> None:
    twice = summary_of(0, [Part(0, 1, 0, 10), Part(0, 1, 20, 30)])
    matched = match([twice, summary_of(1, [Part(0, 1, 0, 10)])])
    assert found(matched) == [(1, [0, 1])]


def test_who_took_part_together_is_told_of_instances_and_of_groups() -> None:
    """Two pairs, which meet twice each."""
    part = [Part(0, 0, 10, 20), Part(0, 1, 30, 40)]
    pairs = [[Group(GroupSource.COMMUNICATOR, key, 2)] for key in (7, 7, 8, 8)]
    matched = match([summary_of(rank, part, group) for rank, group in enumerate(pairs)])
    assert [one.tolist() for one in matched.members()] == [[0, 1, 2, 3], [0, 2, 4]]
    for which, number in (([1, 1, 1, 1], [0, 0, 2, 2]), ([0, 1, 0, 0], [0, 0, 2, 3])):
        assert together(matched, array(which) > 0).tolist() == number


def test_what_may_be_of_one_group_does_the_same_in_one_turn_unless_some_have_more_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All send on two streams; rank 0 reduces on two others, and rank 1 on one. The rest is named."""
    groups = [*(Group(GroupSource.ORDER, key) for key in range(4)), Group(GroupSource.COMMUNICATOR, 9)]
    sends, reduces = Operation.EXCHANGE, Operation.ALL_REDUCE
    ranks = []
    for rank, streams in enumerate(((0, 1, 2, 3, 4), (0, 1, 2, 4), (0, 1))):
        parts = [Part(one, 0, 9 * one, 9 * one + 5, sends if one < 2 else reduces) for one in streams]
        ranks.append(summary_of(rank, [*parts, Part(0, 1, 90, 95, sends)], groups))
    flat = communicators.flat_of(ranks, recorded_of(ranks))
    by_order = flat.of_source(GroupSource.ORDER)
    told = {
        any_turn: [(code, [rows.tolist() for rows in several]) for code, several in
                   communicators._candidates(flat, by_order, any_turn=any_turn)]
        for any_turn in (False, True)
    }  # fmt: skip
    messages = [(sends, [[0, 5], [6, 10], [11, 13]]), (sends, [[1], [7], [12]])]
    assert told[False] == [(reduces, [[2], [8]]), (reduces, [[3]]), *messages]
    assert told[True] == [(reduces, [[2], [3], [8]]), *messages]
    monkeypatch.setattr(communicators, "_OFTEN", 2)
    settled, (one, two, three) = communicators._Settled(flat), map(array, messages[0][1])
    settled.add([one, two, three], [[(0, 0), (1, 0), (2, 0)]])  # of all
    settled.add([array([1]), array([7])], [[(0, 0), (1, 0)]])  # too few
    assert settled.beside == set()
    settled.add([array([7]), one, two], [[(1, 0), (2, 4)], [(0, 0)]])
    assert settled.beside == {(0, 1)}
    rows = settled.flat().rows
    assert rows.group.tolist() == [7, 6, 3, 4, 0, 7, 7, 8, 3, 0, 7, 5, 2, 5]
    assert rows.sequence.tolist() == [0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 5, 0, 0, 1]
    keys = [one.key for one in settled.flat().groups]
    assert (keys[:5], len(keys), len({*keys})) == ([9, 0, 1, 2, 3], 9, 8)  # two of one leader and turn


def test_a_sequence_beyond_all_packing_is_matched() -> None:
    rows = [replace(part, sequence=part.sequence << 58) for part in ended([10, 30, 50])]
    assert [places for _, places in found(match([summary_of(0, rows), summary_of(1, rows)]))] == [[0, 1]] * 3


Ends = list[list[float]]
"""Of each rank, in us."""


def exchanges(ends_us: Ends) -> Exchanges:
    columns = [np.array([round(1_000 * one) for one in sorted(each)], dtype=np.int64) for each in ends_us]
    return Exchanges.of([OnClock(place, ends - 5_000, ends) for place, ends in enumerate(columns)])


def pairs(found: Exchanges, beside: set[tuple[int, int]] | None = None) -> dict[tuple[int, int], int]:
    stage = found.stage_size()
    messages = found.messages(range(len(found.sequences)), beside or set(), stage)
    return {(two.lower, two.higher): len(two.lower_ends) for two in messages}


def pipeline(stages: int, size: int, seed: int = 0, often: int = 12) -> Ends:
    """Ranks of a stage send within 6 us of each other; both ends of a message lie within 1 us, on clocks of
    stages that are up to 8 us apart.
    """
    draw = Random(seed)
    ends: Ends = [[] for _ in range(stages * size)]
    apart = [draw.uniform(0, 8) for _ in range(stages)]
    for turn in range(often * (stages - 1)):
        stage, at = turn % (stages - 1), 1_000.0 * turn
        for one in range(size):
            sent = at + draw.uniform(0, 6)
            for rank in (stage * size + one, (stage + 1) * size + one):
                ends[rank].append(sent + apart[rank // size] + draw.uniform(0, 1))
    return ends


@pytest.mark.parametrize(("stages", "size"), [(2, 4), (4, 2), (4, 4), (3, 3)])
def test_ranks_one_stage_apart_are_known_though_those_of_a_stage_are_in_lockstep(
    stages: int, size: int
) -> None:
    found = exchanges(pipeline(stages, size))
    assert found.stage_size() == size
    assert pairs(found) == {(one, one + size): 12 for one in range((stages - 1) * size)}


def test_without_stages_of_one_size_two_beside_each_other_send_each_other_nothing() -> None:
    """Rank 0 sends to 2, and 1 to 3; ends of 0 and 1 lie together as closely."""
    times = [1_000.0 * number for number in range(12)]
    ends = [times, [one + 1 for one in times], [one + 2 for one in times], [one + 3 for one in times]]
    found = exchanges(ends)
    assert found.stage_size() is None
    assert set(pairs(found, {(0, 1), (2, 3)})) in ({(0, 2), (1, 3)}, {(1, 2), (0, 3)})
    assert {*pairs(found)} & {(0, 1), (2, 3)}
    apart = [[one + us for one in times] for us in (0, 300, 600, 0)]  # three places, which four ranks are not
    assert exchanges(apart).stage_size() is None


def test_times_in_whole_microseconds_tell_no_stage_where_ends_are_a_microsecond_apart() -> None:
    """What eight ranks exchange all with all, five times; which two ends are equal is chance."""
    for seed in range(50):
        draw = Random(seed)
        group = exchanges([[1_000.0 * call + draw.choice((0, 1)) for call in range(5)] for _ in range(8)])
        assert group.stage_size() is None


PIPELINE, UNRESOLVED, TOKENS = map(COMM_KINDS.index, ("pp_p2p", "sendrecv_unresolved", "ep_a2a"))


@pytest.mark.parametrize(("kinds", "whole", "programs", "stage", "stay"), [
    ((PIPELINE, UNRESOLVED, TOKENS), (True, True, True), (0, 1, 2), None, [1, 2]),
    ((UNRESOLVED, UNRESOLVED), (True, False), (0, 1), None, [0]),
    ((UNRESOLVED, UNRESOLVED), (True, False), (0, 0), None, [0, 1]),  # as many are none as are messages
    ((UNRESOLVED, UNRESOLVED, UNRESOLVED), (True, False, False), (0, 0, 0), None, []),
    ((UNRESOLVED, TOKENS), (True, True), (0, 0), 2, [1]),  # that there are stages tells of all
])  # fmt: skip
def test_exchanges_are_messages_by_their_kind_or_where_most_of_a_program_meet_none_from_end_to_end(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[int, ...], whole: tuple[bool, ...],
    programs: tuple[int, ...], stage: int | None, stay: list[int],
) -> None:  # fmt: skip
    several = [np.array([number]) for number in range(len(kinds))]
    exchanges: Any = lambda asked: SimpleNamespace(  # noqa: E731
        are_whole=lambda: np.array(whole)[asked], stage_size=lambda: stage, messages=lambda *_: []
    )
    monkeypatch.setattr(communicators, "Exchanges", SimpleNamespace(of=exchanges))
    settled: Any = SimpleNamespace(beside=set(), add_messages=lambda *_: None)
    settled.kind_of = lambda rows: np.array(kinds)[rows]
    settled.of_one_program = lambda asked: np.equal.outer(*[np.array(programs)[np.concatenate(asked)]] * 2)
    on_clock: Any = [*range(len(kinds))]
    left: Any = communicators._without_messages(settled, several, on_clock)
    assert left[1] == stay


def test_a_message_whose_other_end_is_not_known_is_put_together_with_none() -> None:
    """Ranks 0 and 1 send to 2 and 3, and these to 4 and 5; two more messages of 0 and 1 end at the same time,
    and nobody's beside.
    """
    ends = [[1_000.0 * turn + place % 2 * 7 * (turn % 3) for turn in range(6)] for place in range(4)]
    for place in (0, 1):
        ends[place] += [7_500.0, 8_500.0]
        ends.append([1_400.0 * turn + 500 + place * 7 * (turn % 3) for turn in range(5)])
        ends[place + 2] += ends[place + 4]
    summaries = []
    for place, several in enumerate(ends):
        parts = [
            Part(0, number, end - 50, end, Operation.EXCHANGE)
            for number, end in enumerate(sorted(several), start=1)
        ]
        one = summary_of(place, parts, [Group(GroupSource.ORDER, 7)])
        kind = np.full(len(parts), COMM_KINDS.index("pp_p2p"))
        summaries.append(replace(one, instances=replace(one.instances, kind=kind)))
    clocks = {one.identity.clock: ClockFit(one.identity.clock, 0, 0, 0.0) for one in summaries}
    matched = match(summaries, clocks)
    met = sorted(matched.place.reshape(-1, 2).tolist())
    assert met == [[0, 2]] * 6 + [[1, 3]] * 6 + [[2, 4]] * 5 + [[3, 5]] * 5
