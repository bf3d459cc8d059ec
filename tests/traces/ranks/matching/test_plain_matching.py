"""Collectives of small runs put together, and sequences beside each other: the same by plain loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import permutations
from statistics import median

import numpy as np

from tests.recordings.ranks import drawn
from traces.arrays import IntArray
from traces.ranks.matching.gathered import OnClock, _shift_at_once, likely_shifts, shifts_at_once
from traces.ranks.matching.match import match
from traces.ranks.matching.messages import Exchanges, _meet, _nearest
from traces.ranks.summaries.summary import Operation

EACH_ITS_OWN = (Operation.EXCHANGE, Operation.DISPATCH, Operation.COMBINE, Operation.CONTROL, Operation.OTHER)


def test_an_instance_holds_those_of_one_number_that_do_what_most_of_them_do() -> None:
    for seed in range(40):
        ranks = drawn(seed)
        several: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        at, lone = 0, [0] * len(ranks)
        for place, one in enumerate(ranks):
            for group, number in zip(
                one.instances.group.tolist(), one.instances.sequence.tolist(), strict=True
            ):
                several[group, number].append((place, at))
                at += 1
        matched = match(ranks)
        rows, expected = matched.recorded.rows, []
        for key in sorted(several):
            did = {row: int(rows.operation[row]) for _, row in several[key]}
            usual = median(did.values()) // 1
            sizes = {
                row: int(rows.size_bytes[row]) for _, row in several[key] if did[row] not in EACH_ITS_OWN
            }
            told = [size for size in sizes.values() if size >= 0]
            off = {row for row, size in sizes.items() if size >= 0 and size != median(told) // 1}
            kept = [(place, row) for place, row in several[key] if did[row] == usual and row not in off]
            for place in {place for place, _ in several[key]} - {place for place, _ in kept}:
                lone[place] += 1
            if len(kept) > 1:
                expected.append((*key, int(usual), kept))
        found = [
            (*key, [*zip(places.tolist(), mine.tolist(), strict=True)])
            for *key, places, mine in zip(
                matched.group.tolist(), matched.sequence.tolist(), matched.operation.tolist(),
                np.split(matched.place, matched.first[1:-1]), np.split(matched.at, matched.first[1:-1]),
                strict=True,
            )
        ]  # fmt: skip
        assert found == expected
        assert matched.disagreeing.tolist() == lone
        assert matched.start_ns.tolist() == rows.start_ns[matched.at].tolist()
        which = matched.sizes == 2
        some = matched.take(which)
        assert (some.sizes.tolist(), some.sequence.tolist()) == (
            [2] * int(which.sum()), matched.sequence[which].tolist(),
        )  # fmt: skip
        assert some.at.tolist() == [row for *_, kept in expected if len(kept) == 2 for _, row in kept]
        assert some.end_ns.tolist() == rows.end_ns[some.at].tolist()
        assert some.instance.tolist() == [one for one in range(len(some)) for _ in range(2)]


def drawn_ends(draw: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Of two ranks up to twelve ends each, by 5 us."""
    most = draw.choice((8, 30))
    own, led = (5_000 * np.sort(draw.integers(0, most, draw.integers(1, 13))) for _ in range(2))
    return own, led


def plain_shifts(own: Sequence[int], led: Sequence[int]) -> list[int]:
    reach = min(64, abs(len(own) - len(led)) + min(len(own), len(led)) // 2)
    found = []
    for shift in range(-reach, reach + 1):
        apart = [led[at + shift] - ns for at, ns in enumerate(own) if 0 <= at + shift < len(led)]
        if len(apart) >= 3:
            found.append((median(abs(one - median(apart)) for one in apart), shift))
    return [shift for _, shift in sorted(found, key=lambda one: one[0])[:4] if shift] if reach else []


def plain_shifts_at_once(own: Sequence[int], led: Sequence[int]) -> list[int]:
    often = Counter(sum(one < ns - 10_000 for one in led) - at for at, ns in enumerate(own))
    best = sorted(often, key=lambda shift: (-often[shift], shift))[:4]
    return [shift for shift in best if shift and min(len(own), len(led)) > 1]


def test_shifts_that_look_likely_and_that_at_which_nobody_ends_before_the_other_came() -> None:
    draw, fits = np.random.default_rng(1), 0
    for _ in range(60):
        own, led = drawn_ends(draw)
        lasts, theirs = 5_000 * draw.integers(0, 3, len(own)), 5_000 * draw.integers(0, 3, len(led))
        assert likely_shifts(own, led) == plain_shifts(own.tolist(), led.tolist())
        at_once = plain_shifts_at_once(own.tolist(), led.tolist())
        assert shifts_at_once(own, led) == at_once
        possible = []
        for shift in {0, *at_once}:
            pairs = [(at, at + shift) for at in range(len(own)) if 0 <= at + shift < len(led)]
            late = [max(own[a] - lasts[a] - led[b], led[b] - theirs[b] - own[a]) for a, b in pairs]
            if len(pairs) > 1 and max(late) <= 10_000:
                possible.append((median(abs(int(own[a] - led[b])) for a, b in pairs), shift))
        fits += len(possible) > 1
        found = _shift_at_once(OnClock(0, own - lasts, own), OnClock(1, led - theirs, led))
        assert found == min(possible, default=None)
    assert fits > 4
    assert shifts_at_once(own[:0], led) == likely_shifts(own, led[:0]) == []


def near(ns: int, among: IntArray) -> int:
    return min(range(len(among)), key=lambda at: (abs(int(among[at]) - ns), at))


def test_ends_of_two_meet_where_each_is_the_nearest_of_the_other() -> None:
    draw, met = np.random.default_rng(2), 0
    for _ in range(300):
        own, led = map(np.unique, drawn_ends(draw))
        assert _nearest(own, led).tolist() == [near(ns, led) for ns in own.tolist()]
        found = _meet(own, led)
        both = [(row, near(ns, led)) for row, ns in enumerate(own.tolist())]
        both = [(row, at) for row, at in both if near(int(led[at]), own) == row]
        apart = [int(led[at] - own[row]) for row, at in both]
        within = [one for one in apart if abs(one) <= 20_000]
        middle = int(np.median(within)) if within else 0
        kept = [(row, at, abs(one - middle)) for (row, at), one in zip(both, apart, strict=True) if within]
        kept = [one for one in kept if one[2] <= 10_000]
        if min(len(own), len(led), len(kept)) < 3:
            assert found is None
            continue
        assert found is not None
        met += 1
        assert [*zip(found.lower_ends, found.higher_ends, found.apart_ns, strict=True)] == kept
    assert met > 20


def test_a_stage_is_as_large_as_its_ranks_are_apart_whose_messages_meet_most_closely() -> None:
    """The mean, over ends that both of a pair so many places apart recorded, of how far the nearest is in
    pairs that meet often.
    """
    draw, sizes = np.random.default_rng(4), set[int | None]()
    drawn = [range(4), *np.random.default_rng(0).integers(0, 4, (1000, 4)).tolist()]
    for _ in range(60):
        base = [np.unique(40 * draw.integers(0, 200, 24)) for _ in range(2)]
        ends = [1_000 * np.unique(base[draw.integers(2)] + draw.integers(0, 9)) for _ in range(4)]
        ends[3] = ends[3][draw.integers(0, 12) :]
        found = Exchanges.of([OnClock(place, each, each) for place, each in enumerate(ends)])
        means, near = dict[tuple[int, int], float](), [[9e9] * len(each) for each in ends]
        whole = [[False] * len(each) for each in ends]
        for pair, met in found.meetings.items():
            begin, end = (how(ends[one][at] for one in pair) for how, at in ((max, 0), (min, -1)))
            most = max(sum(begin - 10_000 <= ns <= end + 10_000 for ns in ends[one]) for one in pair)
            far = max(float(np.median(met.apart_ns)), 1_000) / len(met.lower_ends)
            for one, rows in zip(pair, (met.lower_ends, met.higher_ends), strict=True):
                for row in rows.tolist():
                    if far < near[one][row]:
                        near[one][row], whole[one][row] = far, len(met.lower_ends) >= 0.85 * most
        told = [sum(ns < 9e9 for ns in each) for each in near]
        assert found.are_whole().tolist() == [2 * sum(each) > n for each, n in zip(whole, told, strict=True)]
        for size in (1, 2, 3):
            apart: list[list[float]] = [[float("nan")] * len(each) for each in ends]
            for one, other in permutations(range(4), 2):
                for row, ns in enumerate(ends[one].tolist()):
                    if abs(one - other) == size and ends[other][0] - 10_000 <= ns < ends[other][-1] + 10_000:
                        apart[one][row] = 10_000
            for pair, met in found.meetings.items():
                if pair[1] - pair[0] == size and 5 * len(met.apart_ns) >= min(len(ends[one]) for one in pair):
                    for one, rows in zip(pair, (met.lower_ends, met.higher_ends), strict=True):
                        for row, ns in zip(rows.tolist(), met.apart_ns.tolist(), strict=True):
                            apart[one][row] = min(apart[one][row], ns)
            told_ns = [[ns for ns in each if ns == ns] for each in apart]
            for number, ranks in enumerate(drawn):
                count = sum(len(told_ns[rank]) for rank in ranks)
                total_ns = sum(sum(told_ns[rank]) for rank in ranks)
                means[number, size] = total_ns / count if count else 10_000
        best = min((1, 2), key=lambda size: means[0, size])
        farther = [
            min(means[number, size] for size in (1, 2, 3) if size != best) > max(means[number, best], 100)
            for number in range(len(drawn))
        ]
        assert found.stage_size() == (best if farther[0] and sum(farther) > 0.95 * len(drawn) else None)
        sizes.add(found.stage_size())
    assert sizes == {None, 1, 2}
