"""Where a difference lies: rows that add up, each in three parts, and noise that is noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.comparison.comparison import _budget_rows
from heuristics.comparison.difference.matched import Matched, OneSide
from heuristics.comparison.difference.rows import FEW, attribute, layers, scatter_of, whole_parts
from heuristics.result.compared import ComparedRow, LayerDelta
from tests.by_definition.difference import Ledger, parts_by_row, step_delta
from tests.doubles import comparison as doubles
from traces.missing import known
from traces.sections.rank import LayerRow, Rank
from traces.sections.tables import Group


def side(text: str, has_account: bool = True, **fields: Any) -> Rank:
    """Rows of two steps, `gemm 400` or `gc 0,90`, of four activities and nothing hidden where not said:
    `cp 30 x4 /200` are 4, whose work is 200. Steps are as long as the rows of the budget add up to.
    """
    rows = []
    for one in filter(None, text.split("; ")):
        name, times, *more = one.split()
        each = tuple(map(int, times.split(","))) if "," in times else (int(times),) * 2
        count, work = (next((int(part[1:]) for part in more if part[0] == mark), None) for mark in "x/")
        group: Group = "absent" if "absent" in more else "moe" if name.startswith("moe.") else "budget"
        full = name if "." in name or name == "idle" else f"compute.{name}"
        rows.append(doubles.row(full, *each, count=4 if count is None else count, work_ns=work, group=group))
    return doubles.rank(*rows, absent_ns={} if has_account else None, **fields)


def of(ledger: Ledger) -> Rank:
    rows = (doubles.row(name, *times, count=count, work_ns=work) for name, count, work, times in ledger)
    return doubles.rank(*rows, absent_ns={})


def parts(one: ComparedRow) -> tuple[int, int | None, int | None, int | None]:
    return one.delta_ns, known(one.count_ns), known(one.duration_ns), known(one.overlap_ns)


def deltas(rows: tuple[ComparedRow, ...]) -> dict[str, int]:
    return {one.row: one.delta_ns for one in rows}


CP, GC, GAP = "exposed_comm.cp", "idle.launch_starved.gc", "idle.launch_latency.kernel_gap"


@pytest.mark.parametrize(
    ("base", "new", "row"),
    [
        ("gemm 400; norm 100", "gemm 500; norm 100", "compute.gemm 100 = 0 + 100 + 0"),
        ("gemm 40", "gemm 80 x8", "compute.gemm 40 = 40 + 0 + 0"),
        (f"{CP} 30 /200", f"{CP} 90 /200", f"{CP} 60 = 0 + 0 + 60"),
        # what was wholly hidden and shows now is overlap
        (f"gemm 500; {CP} 0 /180", f"gemm 500; {CP} 90 /180", f"{CP} 90 = 0 + 0 + 90"),
        # more and longer share what both make: of 60, 2 x 15 are count and 10 x 3 are duration
        ("gemm 20", "gemm 80 x8", "compute.gemm 60 = 30 + 30 + 0"),
        ("gemm 500", f"gemm 500; {CP} 70 x3 /300", f"{CP} 70 = 70 + 0 + 0"),
        ("gemm 500", f"gemm 500; {GC} 80", "launch_starved.gc 80 = 80 + 0 + 0"),
        # idle time is one row where a side has no reasons, and nobody knows its parts
        (f"{GC} 30 x2; idle.trailing 20 x2", "idle 90 x2", "idle 40 = ?"),
        # kernels, and the graph replay that they became
        (f"gemm 500; {CP} 200", "compute.graph_replay 600", "busy -100 = ?"),
        ("compute.graph_replay 600", "compute.graph_replay 500", "compute.graph_replay -100 = 0 + -100 + 0"),
    ],
)
def test_a_row_moves_by_count_duration_and_overlap(base: str, new: str, row: str) -> None:
    name, delta, _, *three = row.replace(" +", "").split()
    for one, other, sign in ((base, new, 1), (new, base, -1)):
        found = attribute(side(one), side(other))
        assert deltas(found.rows) == {name: sign * int(delta), "noise": 0}
        assert found.step_delta_ns == sign * int(delta)
        expected = (None,) * 3 if three == ["?"] else tuple(sign * int(part) for part in three)
        assert parts(found.rows[0])[1:] == expected


def test_a_row_has_both_sides_by_the_step_and_the_rest_is_in_noise() -> None:
    one, noise = attribute(side("gemm 400; norm 100"), side("gemm 500 x6; norm 100")).rows
    assert (one.base_ns, one.new_ns, one.base_count, one.new_count, one.wall) == (400, 500, 2, 3, "compute")
    assert (noise.base_ns, noise.new_ns, one.share_frac, noise.share_frac) == (100, 100, 1, 0)
    (busy, *_) = attribute(side(f"gemm 500; {CP} 200"), side("compute.graph_replay 600")).rows
    assert (busy.base_ns, busy.new_ns, busy.wall) == (700, 600, None)
    (idle, *_) = attribute(side(f"gemm 9; {GC} 30"), side("gemm 9; idle 90")).rows
    assert (idle.base_ns, idle.new_ns) == (30, 90)


def test_without_a_ledger_buckets_add_up_too() -> None:
    budget = {"compute": 600, "exposed_comm": None, "exposed_copy": 40, "idle": 60}
    untold = doubles.rank(ledger=None, budget_ns=budget, lengths_ns=(700,), source="none", absent_ns={})
    found = attribute(side(f"gemm 500; {CP} 200; idle 90"), untold)
    assert deltas(found.rows) == {"busy": -100, "exposed_copy": 40, "idle": -30, "noise": 0}
    assert found.step_delta_ns == -90
    assert {known(one.count_ns) for one in found.rows[:-1]} == {None}
    gone = attribute(side("gemm 500; idle 90"), doubles.rank(ledger=None, lengths_ns=(700,)))
    assert (deltas(gone.rows), known(gone.rows[-1].count_ns)) == ({"busy": 200, "idle": -90, "noise": 0}, 0)
    assert (found.reasons, found.modules) == ((), ())
    gated, plain = side("gemm 9; moe.experts 5"), side("gemm 9")
    assert [attribute(*sides).modules for sides in ((gated, plain), (plain, gated))] == [(), ()]
    assert deltas(attribute(gated, side("gemm 9; moe.experts 7")).modules) == {"moe.experts": 2}


def test_noise_that_is_a_quarter_of_the_difference_is_named() -> None:
    base = side("gemm 100000; norm 100,300")
    for gemm, named in ((100_300, {"compute.norm": 100}), (100_301, {})):
        assert deltas(attribute(base, side(f"gemm {gemm}; norm 200,400")).scattered) == named
    assert attribute(base, base).scattered == ()
    near = (side(f"gemm 1985; norm {times}") for times in ("0,20", "10,30"))  # a half of a hundredth of 2,000
    assert deltas(attribute(*near).rows) == {"compute.norm": 10, "noise": 0}
    for one, other, few in ((4, 4, False), (3, 4, True), (4, 3, True)):
        sides = (doubles.rank(doubles.row("compute.gemm", *[100] * count)) for count in (one, other))
        assert (attribute(*sides).rows[-1].ci95_ns is FEW) is few


def test_of_few_steps_noise_is_little_of_the_step_and_no_more_than_both_ranges() -> None:
    """Of 9 with ranges of 8 or 10, of 8 as both ranges, and of half a hundredth of the step."""
    noise = {(98, 102, 106, 112): True, (96, 100, 104, 108): True, (50, 150, 50, 150): True}
    noise |= {(98, 102, 107, 111): False, (50, 150, 60, 160): False}
    for steps, is_noise in noise.items():
        sides = [
            OneSide(Fraction(sum(one), 2), Fraction(1), Fraction(0), one) for one in (steps[:2], steps[2:])
        ]
        assert scatter_of(Matched("compute.gemm", None, *sides), Fraction(2_000)).is_noise is is_noise


def mixed(one: int, other: int) -> str:
    """Five steps of each, in an order without a rhythm."""
    return ",".join(str(other if mark == "o" else one) for mark in ".oo..oo.o.")


def test_with_eight_steps_noise_is_what_its_interval_cannot_tell_from_nothing() -> None:
    base = side(f"gemm {'100,102,' * 4}100,102; {GC} {mixed(0, 50)}")
    new = side(f"gemm {'110,112,' * 4}110,112; {GC} {mixed(10, 44)}")
    gemm, noise = attribute(base, new).rows
    assert (gemm.row, gemm.delta_ns, noise.delta_ns) == ("compute.gemm", 10, 2)
    assert noise.parts == ("launch_starved.gc",)
    assert isinstance(gemm.ci95_ns, tuple)
    assert 0 < gemm.ci95_ns[0] <= 10 <= gemm.ci95_ns[1]


def test_what_is_noise_row_by_row_but_not_in_sum_is_told() -> None:
    """Two rows scatter against each other, so that each hides a difference that their sum shows;
    one is told, and the other alone is noise again."""
    base = side(f"{CP} {mixed(0, 100)}; idle.trailing {mixed(100, 0)}")
    found = attribute(base, side(f"{CP} {mixed(20, 120)}; idle.trailing {mixed(110, 10)}")).rows
    assert deltas(found) == {CP: 20, "noise": 10}
    assert found[-1].parts == ("trailing",)


def test_reasons_add_up_to_the_time_without_compute() -> None:
    before, after = (side(f"gemm 500; {GC} {ns}; launch_starved.gc {ns} absent") for ns in (40, 90))
    assert deltas(attribute(before, after).reasons) == {"launch_starved.gc": 50, "noise": 0}
    assert attribute(side("idle 1", has_account=False), after).reasons == ()


def all_to_all(*names: str, ns: int) -> Rank:
    """Two steps of a GEMM, a dispatch and a combine, and the time that no compute ran for them."""
    both = [(name, names.count(name)) for name in dict.fromkeys(names)]
    rows = [f"exposed_comm.{name} {ns * times} x{20 * times}" for name, times in both]
    rows += [f"blocking.{name} {ns * times} x{20 * times} absent" for name, times in both]
    return side("; ".join(["gemm 1", *rows]))


def test_all_to_all_whose_direction_one_side_does_not_tell_is_one_row() -> None:
    found = attribute(all_to_all("ep_dispatch", "ep_combine", ns=300), all_to_all("ep_a2a", "ep_a2a", ns=500))
    assert deltas(found.rows) == {"exposed_comm.ep_a2a": 400, "noise": 0}
    assert (found.rows[0].base_count, found.rows[0].new_count, found.rows[0].count_ns) == (20, 20, 0)
    assert deltas(found.reasons) == {"blocking.ep_a2a": 400, "noise": 0}
    told = attribute(*(all_to_all("ep_dispatch", "ep_combine", ns=ns) for ns in (300, 400)))
    both = {"exposed_comm.ep_combine": 100, "exposed_comm.ep_dispatch": 100, "noise": 0}
    assert deltas(told.rows) == both
    known_, unknown, tp = "exposed_comm.ep_dispatch", "exposed_comm.ep_a2a", "exposed_comm.tp 1 x60"
    for times, moved in ((1, {known_: 110, unknown: -10}), (2, {unknown: 100})):  # of twenty
        base = side(f"{tp}; {known_} 190 x{20 - times}; {unknown} 10 x{times}")
        assert deltas(attribute(base, side(f"{tp}; {known_} 300 x20")).rows) == {**moved, "noise": 0}
    as_many = (side(f"{tp}; {known_} {ns} x10; {unknown} {ns} x10") for ns in (100, 200))
    assert deltas(attribute(*as_many).rows) == {known_: 100, unknown: 100, "noise": 0}


def test_exchanges_whose_purpose_one_side_does_not_tell_are_one_row() -> None:
    untold = all_to_all(*["sendrecv_unresolved"] * 2, ns=500)
    for names in (
        ("ep_dispatch", "ep_combine"),
        ("ep_a2a", "pp_p2p"),
        ("cp", "cp"),
        ["sendrecv_unresolved"] * 2,
    ):
        found = attribute(all_to_all(*names, ns=300), untold)
        assert deltas(found.rows) == {"exposed_comm.sendrecv_unresolved": 400, "noise": 0}


def test_layers_name_the_module_that_moved_most() -> None:
    def with_layers(dispatch_ns: int) -> Rank:
        told = (
            LayerRow(0, "dispatch", "forward", 2, 100, 100),
            LayerRow(3, "dispatch", "forward", 2, dispatch_ns, dispatch_ns),
            LayerRow(3, "dispatch", "backward", 2, 100, 100),
            LayerRow(3, "router", "forward", 2, 60, 60),
        )
        return side("gemm 1", layers=told)

    assert layers(with_layers(200), with_layers(260)) == (LayerDelta(3, 30, 180, 210, "dispatch", 30),
        LayerDelta(0, 0, 50, 50, "dispatch", 0))  # fmt: skip
    assert layers(with_layers(200), side("gemm 1")) == ()


NAMES = ("compute.gemm", "compute.norm", "exposed_comm.cp", "idle.trailing", "exposed_copy.memset")


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    steps = draw(st.sampled_from((1, 2, 3, 7, 8, 11)))
    times = st.tuples(*[st.integers(0, 10**10)] * steps)
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    sizes = st.tuples(st.integers(1, 10**5), st.integers(0, 10**12))
    return [(name, *draw(sizes), draw(times)) for name in names]


@settings(max_examples=60)
@given(ledgers(), ledgers())
def test_rows_add_up_and_agree_with_the_definition(base: Ledger, new: Ledger) -> None:
    found, exact = attribute(of(base), of(new)), parts_by_row(base, new)
    assert found.step_delta_ns == round(step_delta(base, new)) == sum(one.delta_ns for one in found.rows)
    *named, noise = found.rows
    assert noise.row == "noise"
    assert {one.row for one in named} | set(noise.parts) == {
        name.removeprefix("idle.") for name, part in exact.items() if part.delta
    }
    for one in found.rows:
        delta_ns, *three = parts(one)
        assert sum(part for part in three if part is not None) == delta_ns
        assert None not in three
    for one in named:
        exact_parts = exact.get(one.row) or exact[f"idle.{one.row}"]
        assert one.delta_ns == round(exact_parts.delta)
        exact_three = exact_parts.count, exact_parts.duration, exact_parts.overlap
        for part_ns, exact_ns in zip(parts(one)[1:], exact_three, strict=True):
            assert part_ns is not None
            assert abs(part_ns - exact_ns) <= 2 if exact_ns else part_ns == 0
    others = {one.row for one in named}
    of_noise = [part for name, part in exact.items() if name.removeprefix("idle.") not in others]
    both_ns = sum(one.count for one in of_noise), sum(one.duration for one in of_noise)
    for value, true in zip((noise.count_ns, noise.duration_ns), both_ns, strict=True):
        assert abs((known(value) or 0) - Fraction(true)) <= 2 * len(of_noise)
    rest = step_delta(base, new) - sum(one.delta_ns for one in named)
    assert abs(noise.delta_ns - rest) <= Fraction(1, 2)


fractions = st.fractions(-1000, 1000, max_denominator=12)


@given(st.tuples(fractions, fractions, fractions))
def test_parts_round_to_integers_that_add_up(exact: tuple[Fraction, Fraction, Fraction]) -> None:
    count, duration, overlap = whole_parts(exact)
    assert count + duration + overlap == round(sum(exact, Fraction(0)))
    negated = whole_parts((-exact[0], -exact[1], -exact[2]))
    assert negated == (-count, -duration, -overlap)
    if sum(map(bool, exact)) == 2:  # what is nothing stays nothing
        assert (count, duration, overlap)[exact.index(Fraction(0))] == 0


def test_what_rounding_leaves_over_goes_to_noise() -> None:
    cases: list[tuple[tuple[float, ...], str, tuple[int, ...]]] = [
        ((7.25, 1.75), "", (7, 2)),
        # 1 ns too many is taken from the largest row that is not named and has it, else from the largest
        ((7.75, 0.625, 0.625), "ac", (8, 0, 1)), ((7.75, 0.625, 0.625), "", (7, 1, 1)),
        ((7.75, 0.125, 0.5625), "ac", (7, 0, 1)),
        ((7.25, 0.4375, 0.4375), "a", (7, 0, 1)),  # and 1 ns too few is given to it, of equals to the last
    ]  # fmt: skip
    for means_ns, named, rows_ns in cases:
        means = dict(zip("abc", map(round, means_ns), strict=False))
        found = _budget_rows(means, named, round(sum(means_ns)))
        assert tuple(one.mean_ns for one in found) == rows_ns
