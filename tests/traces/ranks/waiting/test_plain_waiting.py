"""Who waits for whom, bytes and experts of small runs, with many equal times: the same by plain loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, drawn
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched, match
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.summaries.summary import UNKNOWN, Messages, Operation, RankSummary
from traces.ranks.waiting.arrivals import _caused, _few
from traces.ranks.waiting.bubbles import _alone_ns
from traces.ranks.waiting.charge import charge, lay_by_step
from traces.ranks.waiting.experts import _groups
from traces.ranks.waiting.peers import _moved_bytes, bytes_of
from traces.ranks.waiting.routing import routing_of
from traces.ranks.waiting.side_by_side import Alike, grid_of, step_of
from traces.ranks.waiting.waits import NOBODY, Waits, measure_waits

SEEDS = range(40)
TO_ALL = (Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE)
EACH_ENDS_ALONE = (Operation.EXCHANGE, Operation.DISPATCH, Operation.COMBINE)


def run(seed: int) -> tuple[list[RankSummary], Matched, Waits]:
    """Every fifth without one clock."""
    ranks = drawn(seed)
    matched = match(ranks)
    aligned = Aligned(matched.start_ns, matched.end_ns, Clocks(seed % 5 > 0, 10_000, ()))
    return ranks, matched, measure_waits(matched, aligned)


def rows_of(matched: Matched) -> list[range]:
    return [*map(range, matched.first[:-1].tolist(), matched.first[1:].tolist())]


def test_waiting_is_charged_to_who_came_last_in_complete_groups_by_step() -> None:
    for seed in SEEDS:
        ranks, matched, waits = run(seed)
        start, end = matched.start_ns, matched.end_ns
        wait, last, whole = [], [], []
        for one, rows in enumerate(rows_of(matched)):
            lasts = [int(end[row] - start[row]) for row in rows]
            beyond = [each - min(lasts) for each in lasts]
            latest = max(rows, key=lambda row: (start[row], -row))
            arrived = int(start[latest])
            own = [min(arrived - int(start[row]), each) for row, each in zip(rows, lasts, strict=True)]
            if matched.ends_together[one]:
                near = [row for row, more in zip(rows, beyond, strict=True) if more <= 10_000]
                own, latest = beyond, max(near, key=lambda row: (start[row], -row))
            if seed % 5 == 0:
                own = beyond
            size = matched.groups[matched.group[one]].size
            whole.append(size is None or len(rows) >= size)
            wait += own
            last.append(latest if whole[-1] and sum(own) and seed % 5 else NOBODY)
        assert (waits.wait_ns.tolist(), waits.last.tolist()) == (wait, last)
        grid = grid_of(ranks, matched)
        step = step_of(matched, grid)
        charged = charge(matched, waits, grid, step)
        tables = np.zeros((2, 4, grid.step_count), dtype=np.int64)
        for one, rows in enumerate(rows_of(matched)):
            if step[one] == UNKNOWN:
                continue
            for row in rows:
                tables[0, matched.place[row], step[one]] += wait[row]
                if last[one] != NOBODY:
                    tables[1, matched.place[last[one]], step[one]] += wait[row]
        assert (charged.waited_ns.tolist(), charged.caused_ns.tolist()) == (*tables.sum(axis=2).tolist(),)
        table = lay_by_step(matched, waits, charged, grid)
        known = ~np.isnan(grid.length_ns)
        assert table.waited_ns[known].tolist() == tables[0][known].tolist()
        assert table.caused_ns[known].tolist() == tables[1][known].tolist()


def test_bytes_are_those_of_all_or_of_the_shortest_that_gives_or_gets_more() -> None:
    for seed in SEEDS:
        ranks, draw = drawn(seed), np.random.default_rng(seed)
        got = [8 * draw.integers(-1, 4, len(one.instances)) for one in ranks]
        ranks = [
            replace(one, messages=Messages(*[np.where(each < 0, UNKNOWN, each)] * 3))
            for one, each in zip(ranks, got, strict=True)
        ]
        matched, rows, expected = match(ranks), match(ranks).recorded.rows, []
        received = np.concatenate(got)
        for one, several in enumerate(rows_of(matched)):
            at = [int(matched.at[row]) for row in several]
            given, lasts = rows.size_bytes[at], (rows.end_ns - rows.start_ns)[at]
            size = int(max(given)) * (len(at) if matched.operation[one] == Operation.ALL_GATHER else 1)
            if matched.operation[one] in (*EACH_ENDS_ALONE, Operation.CONTROL, Operation.OTHER):
                size = int(np.maximum(given, received[at])[lasts == min(lasts)].max())
            expected.append(size if min(given) >= 0 else UNKNOWN)
        assert _moved_bytes(ranks, matched).tolist() == expected
        aligned = Aligned(matched.start_ns, matched.end_ns, Clocks(True, 0, ()))
        counted = np.ones(len(matched), dtype=np.bool_)
        waits = measure_waits(matched, aligned)
        found: Any = bytes_of(ranks, matched, waits, counted, all_ranks_seen=True)
        for rank, given in zip(ranks, found.by_rank, strict=True):
            mine = rank.instances.take(rank.instances.step != UNKNOWN)
            whole = int(mine.size_bytes.sum()) // max(1, len({*mine.step.tolist()}))
            told = len(mine) and (mine.size_bytes >= 0).all()
            assert given == ({COMM_KINDS[6]: whole} if told else {})


def test_the_last_of_a_table_are_those_short_of_it_up_to_the_widest_gap() -> None:
    draw = np.random.default_rng(3)
    for _ in range(100):
        table = 10.0 * draw.choice([0, 0, 1, 2, 20], (3, int(draw.integers(1, 7))))
        caused = np.zeros(table.shape[1])
        for row in table:
            short = [place for place, ns in enumerate(row) if ns <= 0.05 * max(row) and max(row) > 0]
            for place in short:
                caused[place] += sum(row) / len(short)
        assert _caused(table) == pytest.approx(caused)
        order = sorted(range(len(caused)), key=lambda place: (-caused[place], place))
        gaps = [caused[order[one]] - caused[order[one + 1]] for one in range(len(order) // 2)]
        few = order[: gaps.index(max(gaps)) + 1] if gaps and max(caused) > 0 else []
        assert _few(caused) == tuple(sorted(few))


def test_waiting_beside_waiting_counts_once_and_experts_are_those_who_meet_most_often() -> None:
    for seed in SEEDS:
        _, matched, waits = run(seed)
        start, wait, place = matched.start_ns, waits.wait_ns, matched.place
        order = np.lexsort((start, place))
        seen: dict[int, set[int]] = {one: set() for one in range(4)}
        expected = []
        for row in order.tolist():
            mine = {*range(int(start[row]) // 10_000, int(start[row] + wait[row]) // 10_000)}
            expected.append(min(10_000 * len(mine - seen[int(place[row])]), int(matched.exposed_ns[row])))
            seen[int(place[row])] |= mine
        assert _alone_ns(matched, waits, order).tolist() == expected
        which = np.random.default_rng(seed).random(len(matched)) < 0.6
        met = Counter(
            (row, tuple(place[rows].tolist()))
            for rows, one in zip(rows_of(matched), which, strict=True)
            for row in place[rows].tolist()
            if one
        )
        most = {rank: max(met[key] for key in met if key[0] == rank) for rank in {key[0] for key in met}}
        sets = {rank: [key[1] for key in met if key[0] == rank and met[key] == most[rank]] for rank in most}
        if any(len(several) > 1 for several in sets.values()):
            continue
        whole = {rank: all(sets.get(one) == several for one in several[0]) for rank, several in sets.items()}
        label = _groups(matched, which)
        for rank in range(4):
            assert (label[rank] != UNKNOWN) == whole.get(rank, False)
            for other in range(4):
                if whole.get(rank) and whole.get(other):
                    assert (label[rank] == label[other]) == (sets[rank] == sets[other])


def test_experts_of_a_group_are_as_uneven_as_the_largest_is_above_the_mean() -> None:
    for seed in SEEDS:
        _, matched, _ = run(seed)
        draw = np.random.default_rng(seed)
        kinds = Alike(ALIKE, (0, 1)), Alike(ALIKE, (2, 3)) if seed % 2 else Alike(ALIKE, (0, 1, 2, 3))
        slow = draw.choice([1.0, 1.0, 2.0], len(matched.place))
        kind = [0, 0, 1, 1] if seed % 2 else [0] * 4
        told = []
        for one, rows in enumerate(rows_of(matched)):
            like = len({kind[place] for place in matched.place[rows]}) == 1
            worked = min(matched.grouped_ns[rows]) > 0
            tokens = matched.operation[one] not in TO_ALL
            told.append(like and worked and tokens)
        alone = {int(matched.group[one]) for one, is_told in enumerate(told)
                 if is_told and matched.operation[one] in EACH_ENDS_ALONE}  # fmt: skip
        if alone:
            also = np.isin(matched.group, [*alone]) | (matched.operation == Operation.CONTROL)
            told = (np.array(told) & also).tolist()
        often = Counter(int(matched.group[one]) for one, is_told in enumerate(told) if is_told)
        usual = [group for group in often if 2 * often[group] >= max(often.values())]
        counted = (np.array(told, dtype=np.bool_) & (matched.operation != Operation.CONTROL)).tolist()
        times = Counter(int(matched.group[one]) for one, is_told in enumerate(counted) if is_told)
        rule = [group for group in times if 2 * times[group] >= max(times.values())]
        above, mean = Counter[int](), Counter[int]()
        by_place: dict[int, Counter[int]] = defaultdict(Counter)
        for one, rows in enumerate(rows_of(matched)):
            if counted[one] and matched.group[one] in rule:
                work = matched.grouped_ns[rows] / slow[rows]
                group, top = int(matched.group[one]), int(matched.place[rows][work.argmax()])
                above[group] += max(work) - work.mean()
                by_place[group][top] += max(work) - work.mean()
                mean[group] += work.mean()
        found = routing_of(matched, slow, kinds if seed % 2 else kinds[1:])
        if not rule:
            assert found.imbalance is None
            continue
        uneven = {group: above[group] / mean[group] for group in mean}
        worst = [group for group in uneven if max(uneven.values()) / 2 <= uneven[group]]
        tops = {max(sorted(by_place[group]), key=by_place[group].__getitem__) for group in worst}
        always = all(max(by_place[group].values()) >= 0.8 * above[group] for group in worst)
        assert found.hot == (tuple(sorted(tops)) if always and any(above.values()) else ())
        assert found.imbalance == pytest.approx(1 + max(uneven.values()))
        assert found.cost_ns == pytest.approx(max(above.values()))
        assert found.of_experts.tolist() == [
            group in usual and bool(np.any(np.array(told)[matched.group == group]))
            for group in matched.group.tolist()
        ]
