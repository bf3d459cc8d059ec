"""Chains of small runs, in which many times are equal: each figure the same by plain loops over rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise, product
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, Part, array, drawn, summary_of
from traces.arrays import IntArray
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched, match
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.replay import beneath as under
from traces.ranks.replay import chains as way
from traces.ranks.replay import even_stages as even
from traces.ranks.replay.beneath import BESIDE, Slowed, comes_after
from traces.ranks.replay.chains import NEVER, Chains, replayed
from traces.ranks.replay.even_stages import _times, _to_come, even_stages, microbatches_of_two
from traces.ranks.replay.without import _hidden
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.summaries.summary import UNKNOWN, Group, GroupSource
from traces.ranks.waiting.side_by_side import Alike

SEEDS = range(40)


def run(seed: int) -> tuple[Matched, Aligned]:
    matched = match(drawn(seed))
    return matched, Aligned(matched.start_ns, matched.end_ns, Clocks(True, 0, ()))


def plain_behind(matched: Matched) -> list[int]:
    rows, group = range(len(matched.place)), matched.group[matched.instance]
    by_start = sorted(rows, key=lambda row: (matched.place[row], group[row], matched.start_ns[row], row))
    behind = [NO_ROW for _ in rows]
    for one, row in pairwise(by_start):
        if (matched.place[one], group[one]) == (matched.place[row], group[row]):
            behind[row] = one if matched.end_ns[one] <= matched.start_ns[row] else NO_ROW
    return behind


def test_what_lies_behind_and_beside_and_after_what_each_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        matched, aligned = run(seed)
        rows, group = range(len(matched.place)), matched.group[matched.instance]
        place, start, end, exposed = matched.place, matched.start_ns, matched.end_ns, matched.exposed_ns
        behind = plain_behind(matched)
        assert way._behind(matched, aligned).tolist() == behind
        chains = way.chains_of(matched, aligned, np.zeros(len(rows), dtype=np.int64), skipped=())
        beside = [NO_ROW for _ in rows]
        for rank in range(4):
            alone = np.flatnonzero((place == rank) & (exposed >= 0.95 * (end - start))).tolist()
            stretches: list[list[int]] = []
            for row in sorted(alone, key=lambda row: (end[row], row)):
                if not stretches or start[row] > end[stretches[-1][-1]] + 10_000:
                    stretches.append([])
                stretches[-1].append(row)
            for one in stretches:
                theirs = [row for row in one if group[row] != group[one[-1]]]
                beside[one[-1]] = theirs[-1] if theirs else NO_ROW
        assert np.array_equal(way.with_beside(chains, matched, aligned).beside, beside)  # type: ignore[arg-type]
        ends = replayed(chains, chains.own_ns, chains.moving_ns)
        assert {*ends[ends != end].tolist()} <= {NEVER}  # as recorded, but for what contradicts itself
        slow = Slowed(chains.after, np.zeros(len(rows), dtype=np.int64), 0.25)
        monkeypatch.setattr(way, "comes_after", lambda *given, slow=slow: (given[3], slow))
        slowed = way.chains_of(matched, aligned, np.zeros(len(rows), dtype=np.int64))
        ends = replayed(slowed, slowed.own_ns, slowed.moving_ns)
        assert {*ends[ends != end].tolist()} <= {NEVER}  # as much longer as what is beneath lasts
        monkeypatch.undo()
        queued, less = np.random.default_rng(seed).random((2, len(rows))) < 0.7
        queued &= chains.behind != NO_ROW
        less_ns, hidden = 10_000 * less, np.zeros(len(rows), dtype=np.int64)
        for row in sorted(rows, key=lambda row: (place[row], group[row], start[row], row)):
            stays = int(hidden[behind[row]]) if queued[row] else 0
            hidden[row] = max(0, stays + less_ns[row] - exposed[row])
        run_: Any = SimpleNamespace(matched=matched, chains=chains)
        assert _hidden(run_, less_ns, queued).tolist() == hidden.tolist()


def test_what_lies_behind_follows_from_starts_where_rows_are_in_another_order() -> None:
    matched: Any = SimpleNamespace(
        place=array([0, 0, 0, 1]), group=array([3, 4]), instance=array([0, 0, 1, 1])
    )
    aligned = Aligned(array([50, 0, 70, 90]), array([60, 10, 80, 95]), Clocks(True, 0, ()))
    assert way._behind(matched, aligned).tolist() == [1, NO_ROW, NO_ROW, NO_ROW]


def test_what_holds_a_rank_up_is_what_compute_does_not_hide_on_most_like_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(under, "_slowed", lambda *given: given[1:])
    moved = 0
    for seed in SEEDS:
        matched, aligned = run(seed)
        draw = np.random.default_rng(seed)
        rows, place, start, end = range(len(matched.place)), matched.place, matched.start_ns, matched.end_ns
        recorded = matched.recorded.rows
        recorded.exposed_ns[:] = draw.choice([0, 3_500, 7_000, 8_000], len(recorded))
        recorded.compute_ns[:] = draw.choice([9_500, 38_000, 95_000, 400_000], len(recorded))
        matched.kind[:] = draw.choice([5, 5, 6], len(rows))
        role, behind = draw.integers(0, 3, len(rows)), np.array(plain_behind(matched), dtype=np.int64)
        last = ByTime(place, end).before(place, start)
        own = [matched.exposed_ns[row] <= 0.35 * (end[row] - start[row]) for row in rows]
        beneath = [matched.kind[row] == 5 and (own[row] or most(own, role == role[row])) for row in rows]
        held, through = [*last.tolist()], [False for _ in rows]
        for row in rows:
            if behind[row] == NO_ROW or not beneath[last[row]]:
                continue
            between = (end > end[behind[row]]) & (end <= start[row]) & ~np.array(beneath)
            alone = np.flatnonzero(between & (place == place[row])).tolist()
            held[row] = max(alone, key=lambda one: (end[one], one), default=behind[row])
            apart = end[held[row]] - end[behind[row]] - matched.exposed_ns[held[row]] if alone else 0
            worked = matched.compute_ns[row] - max(apart, 0)
            through[row] = worked >= max(1, 0.95 * (start[row] - end[held[row]]))
        before = np.where(last == NO_ROW, UNKNOWN, role[last])
        usual = [most(through, (role == role[row]) & (before == before[row])) for row in rows]
        may = (np.array(through) | np.array(own)[last]) & usual
        found: tuple[IntArray, Any] = comes_after(matched, aligned, role, behind, last, [5])
        after, expected = found[0], np.where(may, held, last)
        assert after.tolist() == expected.tolist()
        under_it = np.where(expected == last, NO_ROW, last)
        assert not any(through) or np.array_equal(found[1], (role, expected, under_it))
        moved += (after != last).sum()
    assert moved > 20


def most(which: list[bool], among: Any) -> bool:
    return bool(np.array(which)[among].sum() * 2 > among.sum())


def test_families_and_places_in_a_step_are_counted_by_group() -> None:
    for seed in SEEDS:
        matched, _ = run(seed)
        groups, several = matched.group.tolist(), np.split(matched.place, matched.first[1:-1])
        members = {
            group: sorted(
                {*np.concatenate([b for a, b in zip(groups, several, strict=True) if a == group]).tolist()}
            )
            for group in groups
        }
        above = dict.fromkeys(members, 0)
        for (group, mine), (other, theirs) in product(members.items(), repeat=2):
            more = groups.count(other) > groups.count(group)
            above[group] += more and len(theirs) == len(mine) and mine[0] in theirs
        assert way.families_of(matched).tolist() == [above[group] for group in groups]
        assert way.members_of(matched).tolist() == [len(members[group]) for group in groups]
        step = matched.step[matched.first[:-1]]
        runs = [[*each] for _, each in groupby(range(len(groups)), key=lambda one: (groups[one], step[one]))]
        usual = {group: median(len(one) for one in runs if groups[one[0]] == group) // 1 for group in members}
        longest = max(map(len, runs), default=1)
        expected: list[int] = []
        for one in runs:
            whole = step[one[0]] != UNKNOWN and len(one) == usual[groups[one[0]]]
            expected += range(len(one)) if whole else (longest + matched.sequence[one]).tolist()
        assert way._in_step(matched, step).tolist() == expected


def drawn_chains(draw: np.random.Generator) -> Chains:
    """Seven instances, which come after any of those before them."""
    sizes = draw.integers(1, 4, 7)
    first, count = np.append(0, np.cumsum(sizes)), int(sizes.sum())
    begin = np.repeat(first[:-1], sizes)

    def earlier() -> IntArray:
        some = draw.integers(-1, np.maximum(begin, 0))
        return np.where(draw.random(count) < 0.2, NO_ROW, some)

    times = [10 * draw.integers(0, 9, count) for _ in range(4)]
    after, behind, beneath = (earlier() for _ in range(3))
    slowed = Slowed(beneath, times[2], 0.25) if draw.random() < 0.5 else None
    beside = earlier() if draw.random() < 0.5 else None
    by_time = ByTime(begin * 0, begin * 0)
    return Chains(first, by_time, after, behind, times[0], times[1], times[3], slowed, beside)


def plain_ends(chains: Chains, own: list[int], moving: list[int], free: list[bool]) -> list[int]:
    ends = {NO_ROW: NEVER}
    beneath = chains.slowed.beneath.tolist() if chains.slowed else [NO_ROW] * len(own)
    beside = chains.beside.tolist() if chains.beside is not None else [NO_ROW] * len(own)
    for rows in (range(*pair) for pair in pairwise(chains.first.tolist())):
        here = {}
        for row in rows:
            after = int(chains.after[row])
            since = 0 if after == NO_ROW else max(ends[after], ends[beside[after]])
            work = own[row]
            if chains.slowed and beneath[row] != NO_ROW:
                beside_ns = max(ends[beneath[row]] - since - int(chains.slowed.lead_ns[row]), 0)
                work += min(round(0.25 * beside_ns), max(own[row], 0) // 3 + 1)
            here[row] = max(since + work, ends[int(chains.behind[row])])
        held = [row for row in rows if not free[row]]
        sooner = (
            max(int(chains.start_ns[row]) for row in held) - max(here[row] for row in held) if held else 0
        )
        last = max(here[row] - sooner * free[row] for row in rows)
        ends |= {row: last + moving[row] for row in rows}
    return [ends[row] for row in range(len(own))]


def test_a_replay_ends_as_that_of_one_instance_after_the_other() -> None:
    for seed in range(60):
        draw = np.random.default_rng(seed)
        chains = drawn_chains(draw)
        own, moving = chains.own_ns, chains.moving_ns
        free = (chains.after == NO_ROW) & (draw.random(len(own)) < 0.5)
        for which in (free, None):
            flags = [False] * len(own) if which is None else which.tolist()
            expected = plain_ends(chains, own.tolist(), moving.tolist(), flags)
            assert replayed(chains, own, moving, which).tolist() == expected


def test_layers_are_shared_out_where_their_kernels_can_be_and_take_as_long_as_there_are_of_them() -> None:
    matched, aligned = run(1)
    chains = way.chains_of(matched, aligned, np.zeros(len(matched.place), dtype=np.int64))
    for one in (ALIKE, replace(ALIKE, attention=0)):  # nothing to even out
        assert even_stages(matched, chains, (Alike(one, (0, 1, 2, 3)),), ()) == (
            chains.own_ns,
            chains.moving_ns,
        )
    for layers, microbatches, more in (
        ([4, 12], (2,), [4, -4]),
        ([0, 4, 12], (2,), [0, 4, -4]),
        ([0, 4, 8], (2,), [0, 0, -4]),  # three layers of four kernels
        ([4, 8], (1,), [2, -2]),  # six of two
        ([4, 8], (), [0, -4]),
    ):
        assert _to_come(array(layers), microbatches).tolist() == more
    apart, took_ns, place = np.array([-1.0, 1]), array([10, 20, 90]), array([0, 0, 1])
    for more, times in (([1, -1], [2, 2 / 3]), ([0, -4], [1, 0])):  # a layer takes 30 ns
        assert _times(place, took_ns, apart, array(more)).tolist() == pytest.approx(times)
    assert _times(place, took_ns * 0, apart, array([1, 1])).tolist() == [1, 1]


@pytest.mark.parametrize(("rising", "own", "moving"), [
    ((1, 1, 0), [0, 225, 0, 125, 46, 40, 62, 10, 20, 10], [50, 25, 60, 62, 16, 20, -62, 0, 0, 0]),
    ((0, 0, 0), [0, 315, 0, 117, 43, 23, 58, 6, 12, 6], [50, 35, 60, 58, 15, 20, -58, 0, 0, 0])
])  # fmt: skip
def test_what_is_in_layers_takes_as_long_as_those_that_a_rank_then_has(
    monkeypatch: pytest.MonkeyPatch, rising: tuple[int, ...], own: list[int], moving: list[int]
) -> None:
    """Ranks of 4 kernels, 12 and none: in layers 100 ns and 400, so that one takes 37.5; then two have 8.

    Rows 0 and 2 come after nothing, 4 is of gradients, 5 is a message. Stretches of kind 1 are on one
    rank: 6 is behind what is in a layer, 7 behind the message, 8 behind gradients. Of no layers all counts.
    """
    place, after = array([0, 0, *[1] * 8]), array([NO_ROW, 0, NO_ROW, 2, 3, 3, 3, 5, 4, 3])
    across, kind = np.arange(10) == 5, array([0] * 6 + [1, 1, 1, 2])
    matched: Any = SimpleNamespace(ranks=3, place=place, kind=np.where(np.arange(10) == 4, BESIDE[0], -1))
    took = array([0, 90, 0, 200, 74, 40, 100, 10, 20, 10]), array([50, 10, 60, 100, 26, 20, -100, 0, 0, 0])
    chains: Any = SimpleNamespace(after=after, own_ns=took[0], moving_ns=took[1])
    monkeypatch.setattr(even, "_across", lambda *_: across)
    monkeypatch.setattr(even, "_stretches", lambda *_: kind)
    monkeypatch.setattr(even, "_rising", lambda *_: (np.array(rising) > 0, array([1, 0, 1]) > 0))
    alike = [Alike(replace(ALIKE, attention=count), (rank,)) for rank, count in enumerate((4, 12))]
    found = even_stages(matched, chains, alike, (2,))
    assert [one.tolist() for one in found] == [own, moving]


def test_a_rank_that_met_nobody_has_layers_of_its_own_and_is_no_error() -> None:
    matched, aligned = run(1)
    matched = replace(matched, disagreeing=np.zeros(5, dtype=np.int64))
    chains = way.chains_of(matched, aligned, np.zeros(len(matched.place), dtype=np.int64))
    nobody = matched.take(np.zeros(len(matched), dtype=np.bool_))
    alone: Any = SimpleNamespace(after=nobody.place, own_ns=nobody.place, moving_ns=nobody.place)
    groups = (Alike(ALIKE, (0, 1, 2, 3)), Alike(replace(ALIKE, attention=4), (4,)))
    for met, how in ((matched, chains), (nobody, alone)):
        own_ns, moving_ns = even_stages(met, how, groups, ())
        assert own_ns.shape == moving_ns.shape == met.place.shape


@pytest.mark.parametrize(("counts", "found"), [
    ([{0: 4, 1: 4}], (3, 2)),  # one kernel for each of three and one more, or one each way of two
    ([{0: 5, 1: 5, 2: 9, UNKNOWN: 20}], (4,)), ([{0: 1}], ()), ([{UNKNOWN: 4}], ()),
    ([{0: 4}, {0: 4}], ()),  # the middle one of three exchanges with two
])  # fmt: skip
def test_how_many_microbatches_two_stages_may_have_follows_from_the_messages_of_a_step(
    counts: list[dict[int, int]], found: tuple[int, ...]
) -> None:
    """Of each pair of neighbours how many messages are in which step; beside them one collective of all."""
    ranks = []
    for rank in range(len(counts) + 1):
        parts = [Part(len(counts), 0, 1_000, 1_005)]
        for pair in {rank - 1, rank} & {*range(len(counts))}:
            steps = [step for step, count in counts[pair].items() for _ in range(count)]
            parts += [Part(pair, n, 10 * n, 10 * n + 5, step=step) for n, step in enumerate(steps)]
        groups = [Group(GroupSource.COMMUNICATOR, key) for key in range(len(counts) + 1)]
        one = summary_of(rank, parts, groups)
        kind = np.where(one.instances.group < len(counts), COMM_KINDS.index("pp_p2p"), 6)
        ranks.append(replace(one, instances=replace(one.instances, kind=kind)))
    matched = match(ranks)
    assert microbatches_of_two(matched, matched.step) == found
