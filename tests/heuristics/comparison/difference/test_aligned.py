"""What one side does by other kernels: matched by place, exact, and mirrored where sides are swapped."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from heuristics.comparison.difference import aligned, places
from heuristics.comparison.difference.aligned import exchanges
from heuristics.result.compared import Exchange, Exchanges, ExchangeSum
from tests.doubles.comparison import kernel, rank
from traces.limits import Limit
from traces.missing import Missing
from traces.sections.tables import Kind, Loops, Phase, Sequence

GEMM, HALF_GEMM = "ampere_sgemm_128x64_tn", "ampere_bf16_s16816gemm_bf16_128x64_tn"
SOFTMAX, FLASH = "softmax_warp_forward", "flash_fwd_kernel"
NORM, CAST, ADAM, FUSED = "rmsnorm_fwd", "cast_to_bf16", "adam_step", "adam_fused"
KEYS = defaultdict(lambda: "compute.norm", {
    GEMM: "compute.gemm", HALF_GEMM: "compute.gemm", SOFTMAX: "compute.softmax", FLASH: "compute.attention",
    NORM: "compute.norm", CAST: "compute.elementwise", ADAM: "compute.optimizer", FUSED: "compute.optimizer",
    "ring": "comm.dp_reduce_scatter", "tree": "comm.dp_reduce_scatter",
    "near": "comm.ep_a2a", "far": "comm.ep_a2a",
})  # fmt: skip
Run = tuple[str, int, int]
"""Name, how many, work."""


def sequence(
    *runs: Run, loops: tuple[tuple[int, int, int], ...] = (), phase: Phase | None = None
) -> Sequence:
    """Runs of kernels by name, count and work; a name with a dot is a key. `loops`: first, runs, times."""
    names = list(dict.fromkeys(name for name, _, _ in runs))
    kinds = (Kind(None, name, None, 64) if "." in name else Kind(name, KEYS[name], phase, None)
        for name in names)  # fmt: skip
    columns = zip(*loops, strict=True) if loops else ((), (), ())
    of, length, work_ns = (
        zip(*((names.index(name), *rest) for name, *rest in runs), strict=True) if runs else ((),) * 3
    )
    return Sequence(0, tuple(kinds), of, length, work_ns, Loops(*map(tuple, columns)))


def compared(base: Sequence, new: Sequence) -> Exchanges:
    found = exchanges(rank(sequence=base), rank(sequence=new))
    assert not isinstance(found, Missing)
    return found


def shown(row: Exchange) -> tuple[dict[str, float], dict[str, float], int]:
    base, new = ({one.name: one.count for one in side} for side in (row.base, row.new))
    return base, new, row.delta_ns


def test_attention_of_three_kernels_is_done_by_one_in_every_layer() -> None:
    base = sequence((GEMM, 1, 40), (NORM, 1, 4), (GEMM, 1, 12), (SOFTMAX, 1, 8), (GEMM, 1, 12), (NORM, 1, 4),
                    loops=((0, 6, 4),))  # fmt: skip
    new = sequence((GEMM, 1, 40), (NORM, 1, 4), (FLASH, 1, 8), (NORM, 1, 4), loops=((0, 4, 4),))
    found = compared(base, new)
    (row,) = found.rows
    assert shown(row) == ({GEMM: 8, SOFTMAX: 4}, {FLASH: 4}, 8 - 32)
    assert (row.key, [one.name for one in row.base]) == ("compute.gemm", [GEMM, SOFTMAX])
    assert (found.same.base_count, found.same.base_ns, found.same.new_ns) == (12, 48, 48)


def test_another_precision_is_matched_by_place_and_a_cast_more_is_new() -> None:
    base = sequence((GEMM, 1, 100), (NORM, 1, 10), (GEMM, 1, 100), (NORM, 1, 10))
    new = sequence(
        (CAST, 1, 65), (HALF_GEMM, 1, 40), (NORM, 1, 10), (CAST, 1, 65), (HALF_GEMM, 1, 40), (NORM, 1, 10)
    )
    found = compared(base, new)
    assert [shown(row) for row in found.rows] == [({}, {CAST: 2}, 130), ({GEMM: 2}, {HALF_GEMM: 2}, -120)]
    assert [row.change for row in found.rows] == ["new", "exchanged"]


def test_one_kernel_of_either_side_is_done_by_two_of_its_class_beside_each_other() -> None:
    one = sequence((GEMM, 1, 4), ("both", 1, 9), (GEMM, 1, 4))
    two = sequence((GEMM, 1, 4), ("one", 1, 5), ("other", 1, 5), (GEMM, 1, 4))
    assert [shown(row) for row in compared(one, two).rows] == [({"both": 1}, {"one": 1, "other": 1}, 1)]
    assert [shown(row) for row in compared(two, one).rows] == [({"one": 1, "other": 1}, {"both": 1}, -1)]


def test_copies_are_no_kernels() -> None:
    base = sequence((GEMM, 1, 10), ("copy.memcpy_d2d", 59, 59))
    new = sequence((GEMM, 1, 10), ("copy.memcpy_d2d", 35, 35))
    (row,) = compared(base, new).rows
    assert (row.change, row.key, row.base_count, row.new_count) == ("fewer", "copy.memcpy_d2d", 59, 35)
    assert len(compared(sequence(("copy.memset", 1, 1)), sequence((GEMM, 1, 10))).rows) == 2  # none for it


def test_kernels_of_one_side_alone_and_more_of_one_are_rows_of_their_own() -> None:
    found = compared(sequence((GEMM, 1, 9)), sequence((GEMM, 1, 9), (NORM, 1, 5), (CAST, 1, 5)))
    assert [(row.change, row.new[0].name) for row in found.rows] == [("new", CAST), ("new", NORM)]
    twice = sequence((GEMM, 1, 9), (NORM, 1, 5), (GEMM, 1, 9), (NORM, 1, 5))
    (row,) = compared(twice, sequence((GEMM, 1, 9), (NORM, 1, 5), (GEMM, 1, 9), (NORM, 3, 15))).rows
    assert (shown(row), row.change) == (({NORM: 2}, {NORM: 4}, 10), "more")
    group = aligned._Group()  # one of each against two of the first: as many, and no longer the same
    for side, name in ((0, GEMM), (0, CAST), (1, GEMM)):
        group.sides[side].add((name, KEYS[name]), Fraction(1 + side), Fraction(1))
    assert not aligned._is_same(group)


def test_a_forward_that_runs_again_in_backward_runs_more_often() -> None:
    once = sequence((NORM, 1, 5), phase="forward")
    kinds = (*once.kinds, Kind(NORM, KEYS[NORM], "backward", None))
    for order in ((0, 1), (1, 0)):
        again = Sequence(0, kinds, order, (1, 1), (5, 5), once.loops)
        (row,), (back,) = compared(once, again).rows, compared(again, once).rows
        assert (row.change, row.phase, row.delta_ns) == ("more", None, 5)
        assert (back.change, back.phase, back.delta_ns) == ("fewer", None, -5)
    exchanged = []  # as large in a phase as where no phase is known
    for name, work_ns in ((GEMM, 9), (HALF_GEMM, 4)):
        kinds = (Kind(name, KEYS[name], "forward", None), Kind(name, KEYS[name], None, None))
        exchanged.append(Sequence(0, kinds, (0, 1), (1, 1), (work_ns, work_ns), once.loops))
    assert [(row.phase, row.delta_ns) for row in compared(*exchanged).rows] == [(None, -5), ("forward", -5)]


def test_a_kernel_that_runs_as_often_stands_for_itself_wherever_it_is_and_however_it_is_spelled() -> None:
    there = sequence((GEMM, 1, 9), (CAST, 1, 3), (NORM, 1, 9))
    back = sequence((GEMM, 1, 9), (NORM, 1, 9), (f"void {CAST}(int, float*)", 1, 4), ("part", 1, 2))
    (row,) = compared(there, back).rows
    assert shown(row) == ({}, {"part": 1}, 2)


def test_counts_and_times_are_those_of_the_mean_step() -> None:
    """Of three casts in two steps the typical one has one here and two there, and no norm."""
    table = kernel(CAST, 30, count=3, key=KEYS[CAST]), kernel(NORM, 8, key=KEYS[NORM])
    base, new = (rank(sequence=sequence((CAST, count, 9)), kernels=table) for count in (1, 2))
    assert exchanges(base, new) == Exchanges((), ExchangeSum(2, 2, 19, 19), 0, ExchangeSum(0, 0, 0, 0))


def test_without_a_sequence_nothing_is_aligned() -> None:
    told = rank(sequence=sequence((GEMM, 1, 1)))
    for sides in ((rank(), told), (told, rank(sequence=None))):
        found = exchanges(*sides)
        assert isinstance(found, Missing)
        assert "kept before" in found.reason
    window = rank(sequence=replace(sequence((GEMM, 1, 1)), step=None))
    assert isinstance(exchanges(window, told), Missing)
    assert compared(*[sequence((GEMM, 1, 1))] * 2).rows == ()


def test_communication_for_one_purpose_is_one_group_wherever_it_stands() -> None:
    rest = (GEMM, 1, 9), (NORM, 1, 9)
    (row,) = compared(sequence(("ring", 1, 5), *rest), sequence(*rest, ("tree", 1, 6))).rows
    assert shown(row) == ({"ring": 1}, {"tree": 1}, 1)
    unknown = compared(sequence(("near", 1, 5), *rest), sequence(*rest, ("far", 1, 6))).rows
    assert [one.change for one in unknown] == ["new", "gone"]
    two = compared(sequence(("ring", 1, 5), *rest, ("tree", 1, 5)), sequence(*rest)).rows
    assert [one.change for one in two] == ["gone", "gone"]


def test_up_to_twelve_kernels_are_done_by_one_and_the_smallest_rows_are_left_out() -> None:
    for letters, rows in (("abcdefghijkl", 1), ("abcdefghijklm", 14)):
        found = compared(sequence(*((f"part_{one}", 1, 1) for one in letters)), sequence(("whole", 1, 9)))
        assert len(found.rows) == rows
    copies = sequence(*((f"copy.{size}", 1, size) for size in range(1, 62)))  # and a GEMM: 62 rows, of 60
    found = compared(copies, sequence((GEMM, 1, 99)))
    assert (len(found.rows), found.left_out_rows, found.left_out) == (60, 2, ExchangeSum(2, 0, 3, 0))


def test_what_a_pair_of_kinds_is_worth() -> None:
    """The same, of other types, of one subclass, of one class; else they are none."""
    forward, backward = (Kind(GEMM, KEYS[GEMM], phase, None) for phase in ("forward", "backward"))
    fill, copy = (Kind(None, f"copy.{name}", None, None) for name in ("memset", "memcpy_d2d"))
    named = ("nvjet", "gemm"), ("rmsnorm_fwd", "norm"), ("rmsnorm_bwd", "norm"), ("cast<float>", "norm")
    gemm, norm, back, wide = (Kind(name, f"compute.{key}", None, None) for name, key in named)
    half = Kind("cast<half>", "compute.elementwise", None, None)
    one, other = (Kind(GEMM, f"comm.{key}", None, None) for key in ("cp", "tp"))
    pairs = [
        (forward, forward, 6), (forward, backward, 0), (forward, gemm, 3), (fill, fill, 6), (fill, copy, 0),
        (one, other, 6), (one, gemm, 0), (wide, half, 4), (norm, back, 2), (norm, gemm, 0), (norm, half, 0),
        (Kind("cast<half>", "comm.cp", None, None), wide, 0),
        (Kind(None, "compute.norm", None, None), norm, 0), (forward, Kind(GEMM, KEYS[GEMM], None, None), 6),
    ]  # fmt: skip
    for before, after, worth in pairs:
        assert places.scores_of([before], [after]) == places.scores_of([after], [before]) == [[worth]]


def test_loops_have_as_many_passes_as_both_sides_have_room_for() -> None:
    two, four = (sequence((GEMM, 1, 8), (NORM, 1, 8), loops=((0, 2, times), (0, 1, 2))) for times in (2, 4))
    with pytest.MonkeyPatch.context() as patch:
        for most, lengths in ((12, (6, 12)), (11, (6, 6)), (6, (6, 6)), (5, (2, 2)), (1, (2, 2))):
            patch.setattr(places, "PLACES", Limit(most, "places", "a test"))
            one, other = places.places_of(two, four)
            assert (len(one), len(other)) == lengths
        patch.setattr(places, "PLACES", Limit(6, "places", "a test"))
        gemm, norm = (places.Place(kind, Fraction(2), Fraction(work)) for kind, work in ((0, 2), (1, 4)))
        assert places.places_of(two, four)[1] == [gemm, gemm, norm] * 2
        loop, many, more = (sequence((GEMM, 1, 8), loops=((0, 1, times),)) for times in (99, 2_000, 2_001))
        for most in (64, 32, 16, 8, 4, 2, 1):
            patch.setattr(places, "PLACES", Limit(most, "places", "a test"))
            assert len(places.places_of(loop, loop)[0]) == most
    assert [len(places.places_of(one, one)[0]) for one in (many, more)] == [2_000, 64]
    nested = sequence((GEMM, 1, 8), (CAST, 1, 8), (NORM, 1, 8), (FLASH, 1, 8), loops=((0, 3, 2), (0, 2, 2)))
    assert places.kinds_of(places.places_of(nested, nested)[0]) == [*[0, 1, 0, 1, 2] * 2, 3]


def test_whole_replays_are_not_aligned_with_kernels() -> None:
    replay = sequence(("compute.graph_replay", 1, 9), (GEMM, 1, 1))
    found = exchanges(rank(sequence=replay), rank(sequence=sequence((GEMM, 1, 1))))
    assert isinstance(found, Missing)


RUNS = st.lists(
    st.tuples(
        st.sampled_from((*KEYS, "copy.memcpy_d2d", "copy.memset")), st.integers(1, 3), st.integers(0, 50)
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def sequences(draw: st.DrawFn) -> Sequence:
    runs = draw(RUNS)
    first = draw(st.integers(0, len(runs) - 1))
    count = draw(st.integers(1, len(runs) - first))
    times = draw(st.integers(2, 4))
    inner = (first, 1, 2)
    return sequence(
        *runs, loops=draw(st.sampled_from(((), ((first, count, times),), ((first, count, times), inner))))
    )


def counts_of(one: Sequence) -> Counter[str]:
    """How many of each kernel, by the definition of loops."""
    found: Counter[str] = Counter()
    for run, (of, length) in enumerate(zip(one.of, one.run_length, strict=True)):
        for first, count, times in zip(
            one.loops.first_run, one.loops.run_count, one.loops.times, strict=True
        ):
            length *= times if first <= run < first + count else 1
        found[one.kinds[of].name or one.kinds[of].key] += length
    return found


@given(sequences(), sequences())
def test_every_activity_and_nanosecond_is_in_one_group_or_the_same(base: Sequence, new: Sequence) -> None:
    found = compared(base, new)
    parts: list[Exchange | ExchangeSum] = [*found.rows, found.same, found.left_out]
    assert sum(one.base_ns for one in parts) == sum(base.work_ns)
    assert sum(one.new_ns for one in parts) == sum(new.work_ns)
    assert sum(one.base_count for one in parts) == counts_of(base).total()
    assert sum(one.new_count for one in parts) == counts_of(new).total()
    for row in found.rows:
        assert row.delta_ns == row.new_ns - row.base_ns
        assert sum(one.work_ns for one in row.base) == row.base_ns
        assert sum(one.count for one in row.new) == row.new_count
    for side, one in (("base", base), ("new", new)):
        other = counts_of(new if one is base else base)
        listed: Counter[str] = Counter()
        for row in found.rows:
            listed.update({each.name: int(each.count) for each in getattr(row, side)})
            if row.change == ("gone" if side == "base" else "new"):
                assert not any(each.name in other for each in getattr(row, side))
        assert all(count <= counts_of(one)[name] for name, count in listed.items())


def test_a_collective_whose_purpose_one_side_knows_is_the_same() -> None:
    def of(*keys: str) -> Sequence:
        kinds = tuple(Kind("ncclDevKernel_SendRecv", key, None, None) for key in dict.fromkeys(keys))
        places_ = tuple(list(dict.fromkeys(keys)).index(key) for key in keys)
        return Sequence(0, kinds, places_, (1,) * len(keys), (5,) * len(keys), Loops((), (), ()))

    unknown, directed = of("comm.ep_a2a", "comm.ep_a2a"), of("comm.ep_dispatch", "comm.ep_combine")
    assert compared(unknown, directed).rows == ()


def test_one_name_for_several_purposes_is_held_against_what_does_each() -> None:
    keys = ("comm.ep_dispatch", "comm.ep_combine")

    def of(*names: str) -> Sequence:
        kinds = tuple(Kind(name, key, None, None) for name, key in zip(names, keys, strict=True))
        return Sequence(0, kinds, (0, 1), (1, 1), (5, 5), Loops((), (), ()))

    rows = compared(of("dispatch", "combine"), of("SendRecv", "SendRecv")).rows
    assert {(row.key, row.change) for row in rows} == {(key, "exchanged") for key in keys}
