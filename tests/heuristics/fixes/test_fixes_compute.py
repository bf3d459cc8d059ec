"""Fixes of the compute wall: what each needs, how it is spelled, and with what it must not go."""

from __future__ import annotations

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.run.run import Run
from tests.doubles.fixes import given, shows, states

CMP_2 = CATALOGUE["CMP-2"]
CMP_3 = CATALOGUE["CMP-3"]


def test_fusions_are_the_host_walls_change_and_made_once() -> None:
    run = shows(moe=True, permute_fused=False)
    assert CMP_2.knobs(run) == CATALOGUE["HST-4"].knobs(run)
    own, its = ([one.text for one in fix.preconditions(run)] for fix in (CMP_2, CATALOGUE["HST-4"]))
    assert [text for text in own if text != "the model routes tokens"] == its
    assert "HST-4" in CMP_2.excludes


def test_low_precision_is_one_change_for_memory_and_compute() -> None:
    run = given(gpu="GB200", precision="bf16", stage="tuned", te_version="2.14")
    assert CMP_3.knobs(run) == CATALOGUE["MEM-4"].knobs(run)
    assert CMP_3.preconditions(run) == CATALOGUE["MEM-4"].preconditions(run)
    assert "MEM-4" in CMP_3.excludes
    assert "CMP-3" in CATALOGUE["MEM-4"].excludes


def test_low_precision_is_a_lever_of_a_bf16_run_on_hopper() -> None:
    shown = Observed(moe=True, dispatcher="deepep", graph_frac=0.0, precision="bf16")
    run = given(shown, gpu="H100", stage="tuned", te_version="2.14")
    (unknown,) = [one for one in CMP_3.preconditions(run) if one.state != "met"]
    assert (unknown.state, unknown.cure) == ("unknown", "--use-distributed-optimizer")


def test_seed_003_mfu_can_look_low_in_fp8() -> None:
    assert "MFU" in CMP_3.side_effects[0]
    assert "tokens/s" in CMP_3.side_effects[0]


def test_one_layout_is_for_programs_of_pytorch_whose_copies_between_layouts_take_a_twentieth() -> None:
    fix = fixes_of("pytorch")["CMP-10"]
    runs = (shows(layout_frac=0.05), shows(layout_frac=0.04), Run())
    assert states(fix, "layout", *runs) == ["met", "unmet", "unknown"]
    assert fix.acts_on(runs[0]) == 0.05
    assert fix.knobs(runs[0]).pytorch[0] == "model = model.to(memory_format=torch.channels_last)"
