"""Two runs without a trace: what differs in effect, what the logs decide, and what explains it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heuristics.comparison.files import differences as rules
from heuristics.comparison.files.comparison import compare_files
from heuristics.comparison.files.differences import differences
from heuristics.comparison.files.side import FileSide
from heuristics.config.about import Given
from tests.configurations.pairs import PAIRS, said, sides, truth
from traces.missing import known
from traces.settings.settings import Framework, settings
from traces.training_log.log import TrainingLog

MODEL = "model:\n  num_layers: 8\n  hidden_size: 64\n  num_moe_experts: 8\n  expert_model_parallel_size: 4\n"
BATCH = "train:\n  global_batch_size: 8\n"


def changed(base: str, new: str, **about: str) -> dict[str, tuple[object, object, str]]:
    compared = compare_files(said(MODEL + base + BATCH, **about), said(MODEL + new + BATCH, **about))
    return {one.what: (one.base, one.new, one.effect) for one in compared.changed}


def test_a_default_that_is_written_out_is_no_difference_and_a_backend_that_nothing_reads_no_effect() -> None:
    assert changed("  moe_router_load_balancing_type: aux_loss\n", "", core_version="0.16.1") == {}
    kind = "  moe_token_dispatcher_type: alltoall\n  moe_flex_dispatcher_backend: "
    found = changed(f"{kind}deepep\n", f"{kind}hybridep\n")
    assert found == {"moe_flex_dispatcher_backend": ("deepep", "hybridep", "none")}


def test_that_settings_are_the_same_is_said_where_both_sides_have_them() -> None:
    mine, none, more = said(MODEL), FileSide("none"), said(MODEL + "  moe_router_fusion: true\n")
    found = [compare_files(*one) for one in ((mine, mine), (mine, none), (none, mine), (mine, more))]
    assert ["another effect" in "".join(one.because) for one in found] == [True, False, False, False]


def test_a_setting_of_one_side_alone_differs_where_it_is_on_and_what_is_null_is_off() -> None:
    """Of fields whose defaults nobody knows."""
    cases = [("cpu_offloading: true", "", True), ("cpu_offloading: false", "", False),
        ("fp8_wgrad: null", "fp8_wgrad: false", False), ("fp8_wgrad: null", "fp8_wgrad: true", True),
        ("params_dtype: bf16", "params_dtype: fp32", False),
        ("recompute_modules: [mlp, moe]", "recompute_modules: [moe, mlp]", False)]  # fmt: skip
    for *pair, differ in cases:
        base, new = (f"  {one}\n" for one in pair)
        assert (pair, bool(changed(base, new)), bool(changed(new, base))) == (pair, differ, differ)
    mine, none = said(MODEL), FileSide("none")
    assert differences(mine, none) == differences(none, mine) == ()
    assert "container" not in rules.said_of(mine)
    null, one, other = (said(MODEL + f"  recompute_modules: {told}\n") for told in ("null", "[mlp]", "[moe]"))
    hidden, some = replace(one, shown=lambda *_: None), replace(one, shown=lambda *_: (None,))
    found = [differences(*sides)[0] for sides in ((null, other), (hidden, other), (other, some))]
    assert [(change.base, change.new, change.withheld) for change in found] == [
        (None, ["moe"], False), (None, ["moe"], True), (["moe"], [None], True)
    ]  # fmt: skip


def test_a_side_is_what_its_log_prints_under_its_configuration_and_legal_where_no_rule_refuses_that() -> None:
    printed = settings({"num_layers": 2, "hidden_size": 4}, "a.log")
    one = FileSide(
        "one", settings=settings({"num_layers": 8}, "a.yaml"), log=TrainingLog("a.log", 1, settings=printed)
    )
    assert [one.files.value(knob) for knob in ("num_layers", "hidden_size")] == [8, 4]
    odd = said(MODEL.replace("parallel_size: 4", "parallel_size: 3"))  # eight experts on three ranks
    assert [side.legal for side in (said(MODEL), odd, FileSide("none"))] == [True, False, None]
    assert compare_files(one, odd).base.problems_count == 0


def test_what_the_other_side_names_has_the_default_of_the_release_where_a_side_leaves_it_out() -> None:
    """A bias has a flag that only switches it off, a padding is no field of the model's."""
    named = ["moe_router_topk", "batch_invariant_mode", "add_bias_linear"]
    named += ["make_vocab_size_divisible_by", "no_knob"]
    other = FileSide("other", settings=settings(dict.fromkeys(named, 1), "b.yaml"))
    whole: Framework = "megatron_lm"
    for framework, core, filled in ((None, "0.15", 1), (None, "0.16", 2), (whole, "0.16", 4)):
        own = settings({"num_layers": 8}, "a.yaml", framework)
        found = FileSide("own", settings=own, given=Given(core_version=core)).against(other).settings
        assert [found.said(name) == "default" for name in named] == [place < filled for place in range(5)]
        assert found.value("moe_router_topk") == 2
    assert FileSide("none").against(other).settings.by_knob == {}
    overlap = "overlap_moe_expert_parallel_comm"
    for name, there in (("num_layers", True), (f"comm_overlap.{overlap}", False)):
        own = settings({name: 1}, "a.yaml")
        assert (overlap in FileSide("own", settings=own).against(other).settings) is there


def test_what_differs_of_versions_and_what_other_settings_tell() -> None:
    base = FileSide("old", versions={"te": "2.9"}, given=Given(gpu="H100"))
    found = differences(base, FileSide("now", versions={"te": "2.10"}, given=Given(gpu="GB200")))
    assert [(one.what, one.base, one.new, one.base_said, one.new_said, one.withheld) for one in found] == [
        ("version.te", "2.9", "2.10", "old", "now", False), ("gpu", "H100", "GB200", "old", "now", False)
    ]  # fmt: skip
    logged = {"te": "2.8", "nccl": "2.28", "cuda": "12.9", "container": "25.09", "odd": "1"}
    sides = [replace(base, log=TrainingLog("a.log", 1, versions=logged), given=one)
        for one in (Given(te_version="2.7"), Given(container="26.04"))]  # fmt: skip
    kept = {"nccl": "2.28", "cuda": "12.9"}
    assert [rules.versions_of(one) for one in sides] == [kept | {"te": "2.7", "container": "25.09"},
        kept | {"te": "2.9", "container": "26.04"}]  # fmt: skip
    told = {"comm_overlap.tp_comm_overlap": "tp_comm_overlap", "params_dtype": "", "no_knob": "no_knob"}
    assert all(rules._told_elsewhere(knob, {knob, twin}) for knob, twin in told.items())
    assert not rules._told_elsewhere("comm_overlap.tp_comm_overlap", {"comm_overlap.tp_comm_overlap"})
    assert not rules._told_elsewhere("tp_comm_overlap", {"tp_comm_overlap"})


def test_another_model_is_not_compared_and_mtp_is_a_known_change(tmp_path: Path) -> None:
    other = MODEL.replace("num_layers: 8", "num_layers: 12")
    compared = compare_files(said(MODEL), said(other))
    model = compared.comparable.differences[0]
    assert (compared.verdict, model.base, model.new) == ("not_comparable", "num_layers 8", "num_layers 12")
    more = MODEL + "  mtp_num_layers: 1\n"
    compared = compare_files(said(MODEL, core_version="0.16.1"), said(more, core_version="0.16.1"))
    assert compared.comparable.state != "no"
    assert [one.id for one in compared.explanations] == ["mtp"]


def test_what_is_configured_is_judged_where_both_sides_have_a_configuration() -> None:
    one, other = (said(MODEL, container=name) for name in ("25.09", "26.04"))
    none = FileSide("none", given=Given(container="25.12"))
    for both, state in (((one, other), "with_differences"), ((one, none), "yes"), ((none, other), "yes")):
        assert compare_files(*both).comparable.state == state


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_the_explaining_difference_stands_first(pair: Path) -> None:
    expected, compared = truth(pair), compare_files(*sides(pair))
    first = compared.explanations[0].id if compared.explanations else None
    assert first in expected["first"]
    assert compared.verdict == expected["verdict"]
    log_of_new = known(compared.new.log)
    if "drift" in expected:
        assert log_of_new is not None
        drift = known(log_of_new.drift)
        assert getattr(drift, "state", None) == expected["drift"]
