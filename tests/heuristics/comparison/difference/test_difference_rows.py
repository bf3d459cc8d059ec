"""Where a difference lies: rows that add up, each in three parts, and noise that is noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.comparison.difference.rows import Attribution, attribute, layers, whole_parts
from heuristics.result.compared import ComparedRow, LayerDelta
from tests.by_definition.difference import Ledger, Parts, parts_by_row, step_delta
from tests.doubles import comparison as doubles
from traces.missing import known
from traces.sections.rank import LayerRow, Rank
from traces.sections.tables import Group, LedgerRow

TWO = (1, 1)


def row(
    name: str, times: tuple[int, ...], count: int = 4, work_ns: int | None = None, group: Group = "budget"
) -> LedgerRow:
    """A row of which nothing is hidden, if nothing else is said."""
    return doubles.row(name, *times, count=count, work_ns=work_ns, group=group)


def rank(*rows: LedgerRow, has_account: bool = True, **fields: Any) -> Rank:
    """A rank whose steps are as long as its budget rows add up to."""
    return doubles.rank(*rows, absent_ns={} if has_account else None, **fields)


def of(ledger: Ledger) -> Rank:
    return rank(
        *(doubles.row(name, *times, count=count, work_ns=work) for name, count, work, times in ledger)
    )


def parts(one: ComparedRow) -> tuple[int, int | None, int | None, int | None]:
    return one.delta_ns, known(one.count_ns), known(one.duration_ns), known(one.overlap_ns)


def deltas(rows: tuple[ComparedRow, ...]) -> dict[str, int]:
    return {one.row: one.delta_ns for one in rows}


def mirrored(rows: tuple[ComparedRow, ...]) -> list[tuple[object, ...]]:
    """The rows as the other side would have them."""
    return [
        (
            one.row, one.wall, -one.delta_ns, *(None if part is None else -part for part in parts(one)[1:]),
            one.new_ns, one.base_ns, one.new_count, one.base_count,
            tuple(-end for end in reversed(one.ci95_ns)) if isinstance(one.ci95_ns, tuple) else one.ci95_ns,
            one.parts,
        )
        for one in rows
    ]  # fmt: skip


def plain(rows: tuple[ComparedRow, ...]) -> list[tuple[object, ...]]:
    return [
        (one.row, one.wall, *parts(one), one.base_ns, one.new_ns, one.base_count, one.new_count,
         one.ci95_ns, one.parts)
        for one in rows
    ]  # fmt: skip


def test_a_slower_class_of_kernels_is_duration() -> None:
    base = rank(row("compute.gemm", (400, 400)), row("compute.norm", (100, 100)))
    new = rank(row("compute.gemm", (500, 500)), row("compute.norm", (100, 100)))
    found = attribute(base, new)
    assert found.step_delta_ns == 100
    assert [(one.row, *parts(one)) for one in found.rows] == [
        ("compute.gemm", 100, 0, 100, 0),
        ("noise", 0, 0, 0, 0),
    ]
    assert (found.rows[0].base_ns, found.rows[0].new_ns, found.rows[0].base_count) == (400, 500, 2)
    assert (found.rows[1].base_ns, found.rows[1].new_ns) == (100, 100)


def test_twice_as_many_of_the_same_length_is_count() -> None:
    found = attribute(rank(row("compute.gemm", (40, 40), 4)), rank(row("compute.gemm", (80, 80), 8)))
    assert parts(found.rows[0]) == (40, 40, 0, 0)


def test_the_same_work_no_longer_hidden_is_overlap() -> None:
    base = rank(row("exposed_comm.ep_dispatch", (30, 30), 4, 200))
    new = rank(row("exposed_comm.ep_dispatch", (90, 90), 4, 200))
    assert parts(attribute(base, new).rows[0]) == (60, 0, 0, 60)


def test_work_that_was_wholly_hidden_and_shows_now_is_overlap() -> None:
    base = rank(row("compute.gemm", (500, 500)), row("exposed_comm.cp", (0, 0), 4, 180))
    new = rank(row("compute.gemm", (500, 500)), row("exposed_comm.cp", (90, 90), 4, 180))
    assert parts(attribute(base, new).rows[0]) == (90, 0, 0, 90)


def test_more_and_longer_share_what_both_make_evenly() -> None:
    """2 of 10 ns become 4 of 20 ns a step: 60 more, of which 2 x 15 are count and 10 x 3 are duration."""
    found = attribute(rank(row("compute.gemm", (20, 20), 4)), rank(row("compute.gemm", (80, 80), 8)))
    assert parts(found.rows[0]) == (60, 30, 30, 0)


def test_a_row_of_one_side_is_all_count() -> None:
    base = rank(row("compute.gemm", (500, 500)))
    new = rank(row("compute.gemm", (500, 500)), row("exposed_comm.tp", (70, 70), 3, 300))
    found = attribute(base, new)
    assert parts(found.rows[0]) == (70, 70, 0, 0)
    assert (found.rows[0].base_ns, found.rows[0].base_count, found.rows[0].new_count) == (0, 0.0, 1.5)


def test_identical_sides_have_noise_alone_with_nothing() -> None:
    one = rank(row("compute.gemm", (500, 300)), row("idle.launch_starved.gc", (0, 90)))
    found = attribute(one, one)
    assert found == Attribution(0, found.rows, found.reasons)
    (noise,) = found.rows
    assert (noise.row, *parts(noise)) == ("noise", 0, 0, 0, 0)
    assert (noise.base_ns, noise.new_ns, noise.parts) == (445, 445, ())


def test_reasons_of_idle_time_are_named_without_idle() -> None:
    base = rank(row("compute.gemm", (500, 500)))
    new = rank(row("compute.gemm", (500, 500)), row("idle.launch_starved.gc", (80, 80)))
    assert deltas(attribute(base, new).rows) == {"launch_starved.gc": 80, "noise": 0}


def test_idle_time_is_one_row_where_a_side_has_no_reasons() -> None:
    base = rank(row("idle.launch_starved.gc", (30, 30), 2), row("idle.trailing", (20, 20), 2))
    new = rank(row("idle", (90, 90), 2))
    found = attribute(base, new).rows
    assert [(one.row, *parts(one)) for one in found] == [
        ("idle", 40, None, None, None),
        ("noise", 0, 0, 0, 0),
    ]


def test_without_a_ledger_buckets_add_up_too() -> None:
    told = rank(row("compute.gemm", (500,)), row("exposed_comm.cp", (200,)), row("idle", (90,)))
    untold = rank(
        ledger=None,
        budget_ns={"compute": 600, "exposed_comm": None, "exposed_copy": 40, "idle": 60},
        lengths_ns=(700,),
        source="none",
    )
    found = attribute(told, untold)
    assert deltas(found.rows) == {"busy": -100, "exposed_copy": 40, "idle": -30, "noise": 0}
    assert found.step_delta_ns == -90
    assert {known(one.count_ns) for one in found.rows[:-1]} == {None}
    assert (found.reasons, found.modules) == ((), ())


def test_kernels_and_the_graph_replay_that_they_became_are_one_row() -> None:
    kernels = rank(
        row("compute.gemm", (500, 500)),
        row("exposed_comm.cp", (200, 200)),
        row("idle.launch_latency.kernel_gap", (90, 90)),
    )
    replay = rank(row("compute.graph_replay", (600, 600)), row("idle.launch_latency.kernel_gap", (10, 10)))
    found = attribute(kernels, replay)
    assert deltas(found.rows) == {"busy": -100, "launch_latency.kernel_gap": -80, "noise": 0}
    (busy,) = (one for one in found.rows if one.row == "busy")
    assert (busy.base_ns, busy.new_ns, busy.wall, known(busy.count_ns)) == (700, 600, None, None)
    assert deltas(attribute(replay, kernels).rows) == {
        "busy": 100,
        "launch_latency.kernel_gap": 80,
        "noise": 0,
    }


def test_replays_on_both_sides_are_compared_with_each_other() -> None:
    sides = [rank(row("compute.graph_replay", (length, length))) for length in (600, 500)]
    assert deltas(attribute(*sides).rows) == {"compute.graph_replay": -100, "noise": 0}


def test_few_steps_call_noise_only_what_is_small_and_within_their_ranges() -> None:
    base = rank(row("compute.gemm", (100_000, 100_000)), row("compute.norm", (100, 180)))
    small = rank(row("compute.gemm", (100_000, 100_000)), row("compute.norm", (180, 200)))
    (noise,) = attribute(base, small).rows  # 50, with ranges of 80 and 20
    assert (noise.delta_ns, noise.parts) == (50, ("compute.norm",))
    clear = rank(row("compute.gemm", (100_000, 100_000)), row("compute.norm", (300, 300)))
    assert deltas(attribute(base, clear).rows) == {"compute.norm": 160, "noise": 0}
    large = rank(row("compute.gemm", (80_000, 121_400)), row("compute.norm", (100, 180)))
    assert deltas(attribute(base, large).rows) == {"compute.gemm": 700, "noise": 0}


def mixed(one: int, other: int) -> tuple[int, ...]:
    """Five steps of each, in an order without a rhythm."""
    return one, other, other, one, one, other, other, one, other, one


def test_with_eight_steps_noise_is_what_its_interval_cannot_tell_from_nothing() -> None:
    base = rank(row("compute.gemm", (100, 102) * 5), row("idle.launch_starved.gc", mixed(0, 50)))
    new = rank(row("compute.gemm", (110, 112) * 5), row("idle.launch_starved.gc", mixed(10, 44)))
    gemm, noise = attribute(base, new).rows
    assert (gemm.row, gemm.delta_ns, noise.delta_ns, noise.parts) == (
        "compute.gemm", 10, 2, ("launch_starved.gc",),
    )  # fmt: skip
    assert isinstance(gemm.ci95_ns, tuple)
    assert 0 < gemm.ci95_ns[0] <= 10 <= gemm.ci95_ns[1]


def test_what_is_noise_row_by_row_but_not_in_sum_is_told() -> None:
    """Two rows scatter against each other, so that each hides a difference that their sum shows;
    one is told, and the other alone is noise again."""
    base = rank(row("exposed_comm.cp", mixed(0, 100)), row("idle.trailing", mixed(100, 0)))
    new = rank(row("exposed_comm.cp", mixed(20, 120)), row("idle.trailing", mixed(110, 10)))
    found = attribute(base, new).rows
    assert deltas(found) == {"exposed_comm.cp": 20, "noise": 10}
    assert found[-1].parts == ("trailing",)


def test_rounding_goes_into_noise() -> None:
    base = rank(row("compute.gemm", (0, 0, 0), 3), row("compute.norm", (0, 0, 0), 3))
    new = rank(row("compute.gemm", (500, 500, 501), 3), row("compute.norm", (500, 500, 501), 3))
    found = attribute(base, new)  # 500 1/3 and 500 1/3
    assert (found.step_delta_ns, [one.delta_ns for one in found.rows]) == (1001, [500, 500, 1])


def test_reasons_add_up_to_the_time_without_compute() -> None:
    def side(gc_ns: int) -> Rank:
        return rank(
            row("compute.gemm", (500, 500)),
            row("idle.launch_starved.gc", (gc_ns, gc_ns)),
            row("launch_starved.gc", (gc_ns, gc_ns), group="absent"),
        )

    found = attribute(side(40), side(90))
    assert deltas(found.reasons) == {"launch_starved.gc": 50, "noise": 0}
    assert attribute(rank(row("idle", (1, 1)), has_account=False), side(90)).reasons == ()


def all_to_all(name_of_dispatch: str, name_of_combine: str, ns: int) -> Rank:
    """Two steps of a GEMM, a dispatch and a combine, and the time that no compute ran for them."""
    named = {name_of_dispatch: ns}
    named[name_of_combine] = named.get(name_of_combine, 0) + ns
    groups: tuple[tuple[str, Group], ...] = (("exposed_comm", "budget"), ("blocking", "absent"))
    rows = [
        row(f"{bucket}.{name}", (each_ns, each_ns), 20 * each_ns // ns, group=group)
        for bucket, group in groups
        for name, each_ns in named.items()
    ]
    return rank(row("compute.gemm", TWO), *rows)


def test_all_to_all_whose_direction_one_side_does_not_tell_is_one_row() -> None:
    told, untold = all_to_all("ep_dispatch", "ep_combine", 300), all_to_all("ep_a2a", "ep_a2a", 500)
    found = attribute(told, untold)
    assert deltas(found.rows) == {"exposed_comm.ep_a2a": 400, "noise": 0}
    assert (found.rows[0].base_count, found.rows[0].new_count) == (20, 20)
    assert found.rows[0].count_ns == 0
    assert deltas(found.reasons) == {"blocking.ep_a2a": 400, "noise": 0}


def test_exchanges_whose_purpose_one_side_does_not_tell_are_one_row() -> None:
    untold = all_to_all("sendrecv_unresolved", "sendrecv_unresolved", 500)
    for names in (("ep_dispatch", "ep_combine"), ("ep_a2a", "pp_p2p"), ("cp", "cp")):
        found = attribute(all_to_all(*names, 300), untold)
        assert deltas(found.rows) == {"exposed_comm.sendrecv_unresolved": 400, "noise": 0}
    same = attribute(untold, all_to_all("sendrecv_unresolved", "sendrecv_unresolved", 300))
    assert deltas(same.rows) == {"exposed_comm.sendrecv_unresolved": -400, "noise": 0}


def test_exchanges_that_both_tell_keep_their_rows() -> None:
    found = attribute(*(all_to_all("ep_dispatch", "ep_combine", ns) for ns in (300, 400)))
    assert deltas(found.rows) == {"exposed_comm.ep_combine": 100, "exposed_comm.ep_dispatch": 100, "noise": 0}


def test_modules_that_moved_stand_beside_the_rows() -> None:
    base = rank(row("compute.gemm", TWO), row("moe.dispatch.forward", (400, 400), group="moe"))
    new = rank(row("compute.gemm", TWO), row("moe.dispatch.forward", (700, 700), group="moe"))
    found = attribute(base, new)
    assert deltas(found.modules) == {"moe.dispatch.forward": 300}
    assert deltas(found.rows) == {"noise": 0}
    assert attribute(rank(row("compute.gemm", TWO)), new).modules == ()


def test_layers_name_the_module_that_moved_most() -> None:
    def side(dispatch_ns: int) -> Rank:
        told = (
            LayerRow(0, "dispatch", "forward", 2, 100, 100),
            LayerRow(3, "dispatch", "forward", 2, dispatch_ns, dispatch_ns),
            LayerRow(3, "dispatch", "backward", 2, 100, 100),
            LayerRow(3, "router", "forward", 2, 60, 60),
        )
        return rank(row("compute.gemm", TWO), layers=told)

    assert layers(side(200), side(260)) == (
        LayerDelta(3, 30, 180, 210, "dispatch", 30),
        LayerDelta(0, 0, 50, 50, "dispatch", 0),
    )
    assert layers(side(200), rank(row("compute.gemm", TWO))) == ()


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
        check_near(one, exact_parts)
    rest = step_delta(base, new) - sum(one.delta_ns for one in named)
    assert abs(noise.delta_ns - rest) <= Fraction(1, 2)


def check_near(one: ComparedRow, exact: Parts) -> None:
    """Each part is its fraction but for rounding, and nothing where that is nothing."""
    for value, true in zip(parts(one)[1:], (exact.count, exact.duration, exact.overlap), strict=True):
        assert value is not None
        assert abs(value - true) <= 2 if true else value == 0


@settings(max_examples=60)
@given(ledgers(), ledgers())
def test_swapped_sides_mirror_everything(base: Ledger, new: Ledger) -> None:
    found, swapped = attribute(of(base), of(new)), attribute(of(new), of(base))
    assert swapped.step_delta_ns == -found.step_delta_ns
    assert plain(swapped.rows) == mirrored(found.rows)


fractions = st.fractions(-1000, 1000, max_denominator=12)


@given(st.tuples(fractions, fractions, fractions))
def test_parts_round_to_integers_that_add_up(exact: tuple[Fraction, Fraction, Fraction]) -> None:
    count, duration, overlap = whole_parts(exact)
    assert count + duration + overlap == round(sum(exact, Fraction(0)))
    negated = whole_parts((-exact[0], -exact[1], -exact[2]))
    assert negated == (-count, -duration, -overlap)
    if sum(map(bool, exact)) == 2:  # what is nothing stays nothing
        assert (count, duration, overlap)[exact.index(Fraction(0))] == 0
