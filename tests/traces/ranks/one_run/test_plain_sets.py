"""Which collectives clocks are fitted on, agree with them, and are missing: the same by plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import US, drawn, shifted
from traces.ranks.matching.match import match
from traces.ranks.one_run import align
from traces.ranks.one_run.align import Aligned, Clocks, consistent, one_clock_holds
from traces.ranks.one_run.problems import of_other_work, truncated


def joined(sets: list[set[int]], count: int) -> list[int]:
    """Of each of `count` the least that it is held together with."""
    number = [*range(count)]
    for _ in range(count):
        for several in sets:
            least = min((number[one] for one in several), default=0)
            number = [least if one in several else of for one, of in enumerate(number)]
    return number


@pytest.mark.parametrize("seed", range(40))
def test_clocks_are_held_together_by_enough_collectives_and_fitted_on_some_of_many(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(align, "MOST_ENDS", replace(align.MOST_ENDS, value=4))
    monkeypatch.setattr(align, "_OF_GROUP", 2)
    matched, draw = match(drawn(seed)), np.random.default_rng(seed)
    of_place = np.array([0, 0, 1, 2]) if seed % 2 else np.arange(4)
    clock, which = of_place[matched.place], draw.random(len(matched)) < 0.7
    rows = [*map(range, matched.first[:-1].tolist(), matched.first[1:].tolist())]
    ends = [
        sum(which[matched.instance[row]] and clock[row] == one for row in range(len(clock)))
        for one in range(4)
    ]
    every, turn, kept = max(1, -(-max(ends) // 4)), 0, []
    for one, group in enumerate(matched.group.tolist()):
        turn = turn + 1 if one and matched.group[one - 1] == group else 0
        apart = min(max((matched.group == group).sum() // 2, 1), every)
        kept.append(turn % apart == 0 or min(ends[clock[row]] for row in rows[one]) <= 4)
    if len(matched):
        assert align._some(matched, clock, which).tolist() == kept
    met = [{int(clock[row]) for row in rows[one]} for one in np.flatnonzero(which)]
    often = {one for one in range(4) if sum(one in each for each in met) > 3}
    assert align._islands(matched, clock, which, 4).tolist() == joined([each & often for each in met], 4)
    middle = [np.median(matched.end_ns[each]) // 1 for each in rows]
    off = [abs(matched.end_ns[row] - middle[one]) for one, each in enumerate(rows) for row in each]
    used = [of for of, one in zip(off, matched.instance, strict=True) if which[one]] or off
    if off:
        assert align._residual_ns(matched, matched.end_ns, which) == int(np.median(used))


def test_processes_share_a_clock_by_which_half_of_what_ends_at_once_does() -> None:
    for seed in range(40):
        draw = np.random.default_rng(seed)
        ranks = [
            shifted(one, int(us) * US)
            for one, us in zip(drawn(seed), draw.choice([0, 30, 60], 4), strict=True)
        ]
        ranks = [
            replace(one, identity=replace(one.identity, clock=max(1, place)))
            for place, one in enumerate(ranks)
        ]
        matched = match(ranks)
        start, end, of_one = matched.start_ns / US, matched.end_ns / US, []
        possible = []
        for one, rows in enumerate(map(range, matched.first[:-1].tolist(), matched.first[1:].tolist())):
            possible.append(max(start[rows]) <= min(end[rows]) + 50)
            if matched.ends_together[one] and max(matched.place[rows]) < 2:
                of_one.append(np.ptp(end[rows]) <= 50)
        aligned = Aligned(matched.start_ns, matched.end_ns, Clocks(True, 0, ()))
        assert consistent(matched, aligned).tolist() == possible
        assert one_clock_holds(ranks, matched) is bool(2 * sum(of_one) >= len(of_one))


def test_a_rank_is_truncated_where_it_misses_a_tenth_of_what_its_groups_did_and_of_other_work_by_half() -> (
    None
):
    for seed in range(40):
        ranks = drawn(seed)
        matched = match(ranks)
        several = np.split(matched.place, matched.first[1:-1])
        short, other = [], []
        for place, one in enumerate(ranks):
            mine = {int(group) for group, each in zip(matched.group, several, strict=True) if place in each}
            could, took = sum(group in mine for group in matched.group), (matched.place == place).sum()
            short += [place] if took < 0.9 * could else []
            other += [place] if matched.disagreeing[place] > max(len(one.instances), 1) / 2 else []
        assert truncated(matched).tolist() == short
        assert of_other_work(matched).tolist() == other
