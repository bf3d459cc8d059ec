"""The order of suspects, what they say, and what explains what."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heuristics.comparison.difference.changed import way
from heuristics.comparison.suspects import shown, ways
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.comparison.suspects.shown import VIEWED
from heuristics.comparison.suspects.table import causes
from heuristics.comparison.suspects.view import View, turned
from heuristics.result.compared import Grid, Worked
from heuristics.result.configured import ConfigFinding
from tests.doubles.result import double
from tests.doubles.suspects import MS, change, facts
from tests.doubles.told_suspects import first, ids, place, row, told_of


def test_each_row_without_a_proven_cause_has_its_place_to_look() -> None:
    found = {row: first(f"{row} 1>9 none")
        for row in ("gemm", "busy", "tp", "os_wait", "arrival", "idle", "trailing")}  # fmt: skip
    places = {name: [one.next for one in causes().looks].index(found[name].next) for name in found
        if found[name].id.startswith("row.")}  # fmt: skip
    assert places == {"gemm": 0, "busy": 0, "tp": 1, "os_wait": 3, "arrival": 3, "idle": 3, "trailing": 4}
    assert causes().looks[2].rows == ("exposed_copy.*",)
    assert [one.next.split()[:2] for one in causes().looks] == [
        ["compare", "the"], ["compare", "the"], ["find", "the"], ["record", "both"], ["look", "at"]
    ]  # fmt: skip


def test_a_cause_explains_no_more_than_was_measured_of_it_and_leaves_the_rest_to_others() -> None:
    more = told_of("python 5>35; norm 2>6 count 10>15; mem recompute_ns=0 > norm=4")
    assert [(one.id, one.explains_ns // MS) for one in find_suspects(more)] == [
        ("row.launch_starved.python", 30), ("recompute_more", 4), ("kernels_more.norm", 4),
    ]  # fmt: skip
    assert ids("sync 1>9; gemm 40; calls cudaDeviceSynchronize 9 9") == ["row.launch_starved.sync"]


def test_a_change_explains_the_rows_it_can_move_and_only_those_that_moved() -> None:
    said = (change("train.manual_gc", True, False), change("tp_comm_overlap", True, False),
        change("my_own", 1, 2))  # fmt: skip
    found = facts(row("gc 1>9"), row("tp 2>1"), changed=said)
    for side in (found, turned(found)):
        assert [one.can_explain for one in with_explained(side).changed] == [("launch_starved.gc",), (), ()]


def test_audit_62_alltoall_is_the_control_arm_where_a_flex_backend_got_slower() -> None:
    assert "moe_token_dispatcher_type alltoall" in first("ep_dispatch 5>9; runs deepep").next
    assert "control arm" in first("ep_dispatch 5>9; runs unknown; set FLEX").next
    for other in ("ep_dispatch 9>5; runs deepep", "tp 5>9; runs deepep", "ep_dispatch 5>9; runs alltoall"):
        assert "control arm" not in first(other).next


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("gemm 40", ""),
        # what moved most first, what is proven before a little more, and the other way than the step last
        ("gc 0>9; tp 50>45", "gc_pauses comm_slower.tp"), ("gc 0>5; tp 50>59", "comm_slower.tp gc_pauses"),
        ("gc 0>9; trailing 0>17", "gc_pauses row.trailing"),
        ("gc 0>9; trailing 0>20", "row.trailing gc_pauses"),
        # two hundredths of what moved, and a wall without a cause
        ("trailing 0>99; gc 0>1", "row.trailing"), ("trailing 0>98; gc 0>2", "row.trailing gc_pauses"),
        ("trailing 0>90; dependency_stalled 0>10", "row.trailing row.dependency_stalled"),
        ("trailing 0>91; dependency_stalled 0>9", "row.trailing"),
        # less than steps vary by, and less than 20 ms, a hundredth of the step
        ("gemm 2000; gc 0>9; noise 0>10", "row.launch_starved.gc"),
        ("gemm 2000; gc 0>10; noise 0>10", "gc_pauses"), ("gemm 2000; gc 0>9; noise 0>8", "gc_pauses"),
        ("gemm 2000; gc 0>21; noise 0>50", "gc_pauses"),
        # of a step that takes as long nothing goes the other way
        ("gc 0>20; noise 26>0; permute 5>15 none; grouped_gemm 15>11 none; + moe_expert_capacity_factor 1>2",
         "gc_pauses knob.moe_expert_capacity_factor"),
        # what the trace shows is no cause of its own, but for the GPU
        ("attention 5>9 none; + detected.short_kernel_frac 1>2", "row.compute.attention"),
        ("attention 5>9 none; + gpu H100>H200", "gpu"),
        # a change that a rule speaks for is none beside it
        ("gc 1>9; gemm 40; + train.manual_gc true>false", "gc_pauses"),
        ("dp_all_gather 5>15; gemm 40; + ddp.bucket_size 1>2", "comm_slower.dp"),
        # the first eight
        (
            "tp 5>25; cp 5>24; pp_p2p 5>23; all_reduce 5>22; other_comm 5>21; ep_dispatch 5>20; gc 5>19;"
            " lazy_init 5>18; profiler 5>17",
            "comm_slower.tp comm_slower.cp comm_slower.pp comm_slower.all_reduce comm_slower.other"
            " comm_slower.ep gc_pauses lazy_init",
        ),
    ],
)  # fmt: skip
def test_suspects_stand_in_the_order_of_what_they_explain(said: str, expected: str) -> None:
    assert ids(said.replace("\n", "")) == expected.split()


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (False, True, 1), ("none", "local", 1), (("attn",), (), -1), (("attn",), ("mlp",), 0), (2, 4, 1),
        ("selective", "full", 1), ("bf16_mixed", "bf16_with_mxfp8_mixed", 1), ("local", "full_iteration", 0),
        (None, None, 0), ("fp8", "bf16", -1), (1.0, 0.5, -1), ("fp32", "tf32", 1), ("fp8", None, -1),
        (("attn",), ("attn", "mlp"), 1),
    ],
)  # fmt: skip
def test_a_setting_goes_up_down_or_cannot_be_said(base: object, new: object, expected: int) -> None:
    there, back = change("knob", base, new), change("knob", new, base)  # type: ignore[arg-type]
    assert (way(there), way(back)) == (expected, -expected)
    assert way(replace(there, withheld=True)) == 0


def test_workers_of_a_loader_are_the_same_only_where_they_are() -> None:
    sides = {"4 > workers=1": None, "4": "4", "null > workers=1": None, "null": None}
    found = {
        one: VIEWED.named("loader_kept").of(View(told_of(f"gemm 4; loads workers={one}"))) for one in sides
    }
    assert found == sides


def test_findings_of_a_dispatcher_are_those_of_the_side_after() -> None:
    both = [double(ConfigFinding, id=id_) for id_ in ("dispatcher-fallback", "gc")]
    assert shown.findings(View(facts(new_result={"config_findings": (*both,)}))) == ("dispatcher-fallback",)


def test_where_runs_are_not_comparable_nobody_is_later_for_the_same_kernels() -> None:
    for text, id_ in (
        ("gemm 40 count 100>100", "host_slower"),
        ("gemm 40>44 count 100>140", "launches_more"),
    ):
        told = told_of(f"python 5>30; {text}")
        alike, unlike = (find_suspects(replace(told, comparable=one))[0].id for one in (True, False))
        assert (alike == id_, unlike == id_) == (id_ == "host_slower", id_ == "launches_more")


def test_where_the_order_is_known_it_alone_tells_what_a_fusion_did() -> None:
    added = told_of("kernels elementwise gone 1>-; kernels elementwise new ->9 x40")
    aligned = [place(f"elementwise: 1 fused 4 > {count} add 9") for count in (1, 3)]
    found = [ways.unfused(View(one)) for one in (added, *(replace(added, exchanged=by) for by in aligned))]
    assert found == [True, False, True]


def test_of_several_kernels_in_a_place_the_first_is_named_with_its_own_count() -> None:
    kernels = [Worked("first", "compute.gemm", 3, 2 * MS), Worked("second", "compute.gemm", 5, MS)]
    assert ways._done(kernels, 3 * MS, kernels) == "3.00 ms (3 x first and others)"
    assert ways._done((), 0, ()).endswith("(none)")


def test_a_side_without_a_ledger_is_not_recorded_as_one_that_has_none_of_its_rows() -> None:
    for sides, alike in (({}, True), ({"base": {"ledger": None}}, False), ({"new": {"ledger": None}}, False)):
        assert ways.seen_alike(View(facts(**sides))) is alike  # type: ignore[arg-type]


def test_of_kernels_and_of_places_the_first_two_are_told() -> None:
    slower = "; ".join(f"kernels gemm slower {ms}>9" for ms in (1, 2, 3))
    places = place("gemm: 1 tile 1 > 1 block 2")
    others = [replace(places.rows[0], **other) for other in ({"key": "compute.norm"}, {"change": "gone"})]
    found = told_of(f"kernels norm slower 7>9; kernels gemm gone 8>-; {slower}")
    view = View(replace(found, exchanged=replace(places, rows=(*others, *places.rows * 3))))
    told = [one.partition(": ")[2] for one in ways.kernels_of("compute.gemm", "slower", view)]
    assert told == [f"{ms}.00 ms -> 9.00 ms, grid: 1x1x1 -> 2x1x1" for ms in (1, 2)]
    assert ways.places_of("compute.gemm", view) == ("1.00 ms (1 x tile) -> 2.00 ms (1 x block)",) * 2


@pytest.mark.parametrize(
    ("base", "new", "cause"),
    [
        ((4, 4, 1), (16, 16, 1), "kernels_blocks.gemm"), ((4, 4, 1), (4, 4, 1), "kernels_grid.gemm"),
        (None, (4, 4, 1), "kernels_grid.gemm"), ((16, 16, 1), (4, 4, 1), "kernels_blocks.gemm"),
        ((4, 4, 1), (4, 4, 2), "kernels_blocks.gemm"), ((1, 4, 1), (4, 4, 1), "kernels_blocks.gemm"),
    ],
)  # fmt: skip
def test_kernels_in_blocks_of_another_size_are_told_as_that(base: Grid, new: Grid, cause: str) -> None:
    found = told_of("gemm 10>40; kernels gemm grid 10>40")
    (one,) = found.kernels
    found = replace(found, kernels=(replace(one, base_block=base, new_block=new),))
    suspect = find_suspects(found)[0]
    assert suspect.id == cause
    assert any("block" in line for line in suspect.because) == (cause == "kernels_blocks.gemm")
