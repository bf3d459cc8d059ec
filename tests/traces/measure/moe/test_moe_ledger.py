"""The MoE ledger: modules by pass and layer, their time and the tax of routing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View
from bench.simulate.recording import Recording
from bench.simulate.run import run
from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.launches import GATHER, GEMM, PERMUTE, ROUTER, SENDRECV, rank_of
from tests.recordings.moe_truth import Figures, measured, over_layers, true_rows
from traces.arrays import NOWHERE
from traces.measure.moe.ledger import _unclear, _untold_recompute
from traces.measure.moe.passes import Passes
from traces.measure.recompute import Recompute
from traces.measurements import measure_rank
from traces.missing import Missing
from traces.sections.rank import Moe
from traces.steps.selection import Selection

SMALL = Knobs(step_count=2, layer_count=3, microbatch_count=2, shared_expert=True)
EXCHANGED = ("dispatch", "grouped_gemm", "combine", "unpermute")
NAMED, BARE = View(ranges="layers"), View(ranges="none")


@pytest.mark.parametrize("recompute", ["none", "moe", "full"])
@pytest.mark.parametrize("view", [NAMED, BARE], ids=["ranges", "bare"])
@pytest.mark.parametrize("dispatcher", ["alltoall", "deepep", "hybridep"])
def test_every_module_of_every_pass_and_layer_is_as_it_ran(
    dispatcher: str, view: View, recompute: str, tmp_path: Path
) -> None:
    simulated = run(replace(SMALL, dispatcher=dispatcher, recompute=recompute))
    found = measured(simulated, view, tmp_path)
    assert isinstance(found.moe, Moe)
    truth = true_rows(simulated, found.steps.windows)
    rows: dict[tuple[str, str], Figures] = {
        (row.module, row.pass_): (row.count, row.work_ns, row.wall_ns) for row in found.moe.rows
    }
    assert rows == over_layers(truth)
    assert truth == {
        (row.layer, row.module, row.pass_): (row.count, row.work_ns, row.wall_ns)
        for row in found.moe.by_layer
    }
    assert found.moe.layers == 3
    assert ("dispatch", "recompute") in rows or recompute == "none"
    assert not isinstance(found.moe.tax_ns, Missing)


@pytest.mark.parametrize(
    ("knobs", "view", "said"),
    [
        ({"dispatcher": "none"}, BARE, "routes"),
        ({"graph_router": True}, View(ranges="steps", graphs="graph"), "graph replays were recorded whole"),
        ({"dispatcher": "deepep", "ep_overlap": True}, View(ranges="none", calls=False, events=False),
         "do not close"),
    ],
)  # fmt: skip
def test_a_ledger_that_cannot_be_told_says_why(
    knobs: dict[str, Any], view: View, said: str, tmp_path: Path
) -> None:
    found = measured(run(replace(SMALL, **knobs)), view, tmp_path).moe
    assert isinstance(found, Missing)
    assert said in found.reason


def ledger_of(path: Path) -> Moe:
    found = measure_rank(rank_of(path), Selection()).moe
    assert isinstance(found, Moe)
    return found


def test_a_read_of_token_counts_is_tax_with_what_the_host_then_loses() -> None:
    """The copy ends at 20, the host launches at 30 what starts at 40: for 10 of the 20 it had read counts."""
    run = Run()
    run.work("router", 0, 10)
    run.work("d2h", 10, 20, launch=2, size_bytes=256)
    run.call("sync", 5, 26)
    for place, name in enumerate(("permute", *EXCHANGED)):
        run.work(name, 40 + 10 * place, 50 + 10 * place, launch=30 + 2 * place)
    moe = run.measured(window=(0, 90)).moe
    assert isinstance(moe, Moe)
    assert {
        row.module: (row.wall_ns // 1_000, row.exposed_ns // 1_000, row.blocking_ns, row.host_wait_ns)
        for row in moe.rows
    } == {
        "router": (10, 0, 0, 0),
        "preprocess_and_token_sync": (10, 10, 10_000, 10_000),
        "permute": (10, 0, 0, 0),
        "dispatch": (10, 10, 10_000, 0),
        "expert_gemm": (10, 0, 0, 0),
        "combine": (10, 10, 10_000, 0),
        "unpermute": (10, 0, 0, 0),
    }
    assert moe.tax_ns == 70_000  # all but the expert, and the wait


def test_what_ran_before_the_steps_is_in_no_layer_and_experts_count_in_their_step() -> None:
    """Router and permute run in the step before their pass. Of 10 us of a dispatch 2 pass till its launch."""
    run = Run()
    for step in run.steps(4, every=100):
        step.range("layer_5f", -12, 25)
        for place, name in enumerate((*EXCHANGED, "norm", "router", "permute")):
            step.work(name, 10 * place, 10 * place + 10)
    found, whole = run.measured(steps="1:3"), run.measured().moe
    assert isinstance(found.moe, Moe)
    assert isinstance(whole, Moe)
    assert [row.count for row in found.moe.by_layer] == [1, 1, 2, 2, 2, 2]
    assert [row.blocking_ns for row in whole.rows] == [0, 0, 4 * 8_000, 0, 4 * 8_000, 0]
    assert found.summary.experts.work_ns.tolist() == [10_000, 10_000]


DISPATCH = "void deep_ep::intranode::dispatch<(int)8>(int4 *)"


def test_where_no_launch_is_known_times_stand_and_what_waited_is_missing(export: Export) -> None:
    recording = Recording()
    for place, name in enumerate((ROUTER, PERMUTE, DISPATCH)):
        recording.kernel(name, place * 10_000, place * 10_000 + 9_000, stream=20 if name == DISPATCH else 7)
    found = ledger_of(export(recording))
    for row in found.rows:
        assert row.wall_ns == 9_000
        assert isinstance(row.blocking_ns, Missing)
        assert isinstance(row.host_wait_ns, Missing)
    assert isinstance(found.tax_ns, Missing)
    assert "waits for token counts" in found.tax_ns.reason


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((DISPATCH, "permutation"), ("mega_moe_impl", "run in one kernel")),
        *((SENDRECV, "some SendRecv could be"), (GATHER, "gathers and scatters of unknown purpose")),
    ],
)
def test_where_names_tell_too_little_the_tax_is_open(export: Export, name: str, said: str) -> None:
    recording = Recording()
    for place, kernel in enumerate((ROUTER, name, GEMM)):
        recording.kernel(kernel, place * 10_000, place * 10_000 + 9_000, launch_ns=place * 10_000)
    found = ledger_of(export(recording))
    assert isinstance(found.tax_ns, Missing)
    assert said in found.tax_ns.reason
    assert found.tax_frac == found.tax_ns
    assert isinstance(found.layers, Missing)


def passes_said(text: str) -> Passes:
    """A letter each, `?` where nothing tells; small ones are cut; lanes are parted by `|`."""
    letters = text.replace("|", "")
    lane = np.cumsum([*map("|".__eq__, text)])[[one != "|" for one in text]]
    kind = np.array(["FRB".find(one) for one in letters.upper()])
    none, whole = np.zeros(len(letters), dtype=np.int64), np.array([not one.islower() for one in letters])
    return Passes(none, none, none, none, whole, kind, lane)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("FFFFB", ""), ("FFfFFFFFFFF", ""), ("FFfFFFFFFF", ""), ("FFfFFFFFF", "1 of 9"), ("fFf|bBb", ""),
        ("F?FFFBBBB", "1 of 9"), ("?FFFBBBB", ""),
    ],
)  # fmt: skip
def test_passes_that_do_not_close_within_a_lane_are_few(text: str, broken: str) -> None:
    run = Run()
    run.work("gemm", 0, 10)
    found = _unclear(run.rank(), passes_said(text))
    assert (found.reason.partition(" passes")[0] if isinstance(found, Missing) else "") == broken


@pytest.mark.parametrize(
    ("forward", "backward", "is_known", "told"),
    [(10, 9, False, True), (11, 9, False, False), (11, 9, True, True), (11, 0, False, True)],
)
def test_of_more_forward_passes_than_backward_recompute_must_be_known(
    forward: int, backward: int, is_known: bool, told: bool
) -> None:
    why = Missing("", "unknown", "none")
    recompute = Recompute(why, 0 if is_known else why, why, NOWHERE)
    found = _untold_recompute(passes_said("F" * forward + "B" * backward), recompute)
    assert (found is None) is told
