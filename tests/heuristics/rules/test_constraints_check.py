"""A whole configuration against the rules, what stays undecided, and a change merged into all of it."""

from __future__ import annotations

import dataclasses
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from packaging.version import Version

from heuristics.config.about import Given
from heuristics.config.view import Trust
from heuristics.guides.dispatcher import choose_dispatcher, refusals
from heuristics.rules.check import asked_by, broken, check_rules, undecided
from heuristics.rules.rules import Releases, rules
from heuristics.run.run import Run
from tests.configurations.constraints import DEFAULTS, megatron_cases, run_with, whole_run
from traces.settings.settings import Value, settings
from traces.settings.values import unrolled

OVERLAP = "overlap_moe_expert_parallel_comm"
BASE = cast(dict[str, object], megatron_cases()[0]["knobs"])


def ids(run: Run) -> list[str]:
    return [one.id for one in check_rules(run)]


def test_errors_come_before_warnings_and_warnings_before_what_is_ignored() -> None:
    levels = [
        one.level
        for one in check_rules(
            run_with(
                {
                    "mb": True,
                    "gpu": "H100",
                    OVERLAP: True,
                    f"comm_overlap.{OVERLAP}": True,
                    "expert_model_parallel_size": 1,
                    "tensor_model_parallel_size": 2,
                    "delay_wgrad_compute": True,
                    "comm_overlap.delay_wgrad_compute": False,
                }
            )
        )
    ]
    assert levels == ["error", "warning", "ignored"]


def test_a_change_is_asked_what_the_rules_about_its_knobs_ask() -> None:
    run = run_with({"core": "0.18.0", "torch": "2.5.1", "moe_shared_expert_overlap": False})
    asked = {one.rule.id: one for one in asked_by(run, {OVERLAP: True})}
    assert asked["ep-overlap-torch"].holds is False
    assert asked["ep-overlap-shared-experts"].holds is True
    assert asked["ep-overlap-expert-parallel"].holds is None
    assert rules()["ep-overlap-expert-parallel"].asks(run.changed({OVERLAP: True}).view(Trust.CHECKED)) == (
        "expert_model_parallel_size",
        "--ep",
    )
    assert {"graphs-rng-tracker", "ep-overlap-mtp-pipeline"}.isdisjoint(asked)
    off = {one.rule.id for one in asked_by(run, {OVERLAP: False})}
    assert off.isdisjoint({"ep-overlap-torch", "ep-overlap-shared-experts"})


def test_an_unset_knob_is_a_change_as_well() -> None:
    run = run_with({"virtual_pipeline_model_parallel_size": 4, "pipeline_model_parallel_size": 4})
    assert run.changed({"virtual_pipeline_model_parallel_size": None}).config.vpp == 1


PP8: dict[str, object] = {OVERLAP: True, "pipeline_model_parallel_size": 8}
HYBRIDEP = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}


@pytest.mark.parametrize(
    ("rule", "knobs", "refused", "waits_for"),
    [
        ("ep-overlap-virtual-stages", PP8, True, ()),  # and no virtual stages, if nothing sets them
        ("ep-overlap-virtual-stages", {OVERLAP: True}, False, ()),  # nor pipeline stages
        ("ep-overlap-virtual-stages", {**PP8, "launcher.recipe": "a"}, False, ()),  # which may set them
        ("ep-overlap-precision", PP8, True, ()),  # neither bf16 nor fp16
        ("ep-overlap-expert-parallel", PP8, False, ()),  # of 1 rank by default, which is not off
        ("ep-overlap-mtp-one", PP8, False, ()),  # met without MTP, in any release
        ("ep-overlap-torch", PP8, False, ("--torch-version",)),
        ("ep-overlap-max-connections", PP8, False, ()),  # a warning refuses nothing
        ("hybridep-rack", HYBRIDEP, False, ("--nvlink-domain or --gpu-model",)),  # and not for EP's size
        ("mxfp8-gpu", {"fp8": "hybrid"}, False, ()),  # whether it is MXFP8 is unknown
    ],
)
def test_a_rule_that_lacks_an_input_is_judged_by_defaults_that_are_off(
    rule: str, knobs: dict[str, object], refused: bool, waits_for: tuple[str, ...]
) -> None:
    found = {one.id: one for one in undecided(run_with({"mb": True, **knobs}))}[rule]
    assert (found.broken_by_default, found.waits_for) == (refused, waits_for)


def test_what_only_a_guide_asks_for_is_never_undecided() -> None:
    run = run_with({"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"})
    assert rules()["flex-sm-count"].verdict(run.view(Trust.CHECKED)) is None
    assert "flex-sm-count" not in {one.id for one in undecided(run)}


def test_a_rule_of_a_framework_asks_for_the_configuration_where_that_is_unknown() -> None:
    knobs = {"tp_comm_overlap": True, "sequence_parallel": False}
    found = {one.id: one for one in undecided(run_with(knobs))}["tp-overlap-sequence-parallel-lm"]
    assert found.asks == ("--config",)
    assert "tp-overlap-sequence-parallel-lm" in ids(run_with({**knobs, "lm": True}))
    assert ids(run_with({**knobs, "mb": True})) == []


@pytest.mark.parametrize(
    ("since", "until", "version", "expected"),
    [
        ("0.14.0", "", Version("0.13.0"), False), ("0.14.0", "", Version("0.14.0"), True),
        ("", "0.18.0", Version("0.17.1"), True), ("", "0.18.0", Version("0.18.0"), False),
        ("0.14.0", "", None, True), ("", "0.18.0", None, None),
    ],
)  # fmt: skip
def test_a_rule_holds_from_its_first_release_to_before_its_last(
    since: str, until: str, version: Version | None, expected: bool | None
) -> None:
    first, gone = (Version(one) if one else None for one in (since, until))
    rule = replace(rules()["force-balance"], since=first, until=gone)
    assert rule.in_force(Releases(version, None, None)) is expected


def test_options_alone_break_a_rule_and_refuse_no_run() -> None:
    run = Run(given=Given(world_size=12, tp=8, pp=1, cp=1))
    assert (ids(run), broken(run)) == (["world-attention-mesh"], set())
    configured = dataclasses.replace(run, settings=settings({"hidden_size": 64}, "run.yaml"))
    assert broken(configured) == {"world-attention-mesh"}


def test_bridge_gives_the_core_version_and_its_comm_overlap_wins() -> None:
    run = run_with({"mb": True, "bridge": "0.3.1", OVERLAP: True, f"comm_overlap.{OVERLAP}": False})
    assert run.view(Trust.CHECKED).core == (0, 16, 1)
    assert ids(run) == ["ep-overlap-overwritten"]


def test_a_layout_that_grows_beyond_reason_is_not_unrolled() -> None:
    assert unrolled("t*999999999999999999") is None
    assert unrolled("((t*9999)*9999)*9") is None


@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)), st.none(), max_size=60))
def test_knowing_less_never_breaks_another_rule(unknown: dict[str, None]) -> None:
    knobs = {**BASE, OVERLAP: True, "recompute_granularity": "selective", "recompute_modules": ["moe"]}
    run = whole_run({**knobs, "pipeline_model_parallel_size": 4, "sequence_parallel": True}, core="0.17.0")
    less = {knob: one for knob, one in run.settings.by_knob.items() if knob not in unknown}
    poorer = dataclasses.replace(
        run, settings=dataclasses.replace(run.settings, by_knob=less), given=Given(core_version="0.17.0")
    )
    assert set(ids(poorer)) <= set(ids(run))


def test_every_verdict_is_true_false_or_unknown_on_any_knob_of_any_type() -> None:
    odd: tuple[object, ...] = ("null", "", "x", 0, 1, -1, 2.5, True, False, [], ["x"], [0, 1])
    for value in odd:
        knobs = {knob: value for rule in rules().values() for knob in rule.knobs}
        config = run_with({"mb": True, "core": "0.19.0", **knobs}).view(Trust.CHECKED)
        assert {rule.verdict(config) for rule in rules().values()} <= {True, False, None}


def test_what_a_framework_mends_itself_breaks_no_rule() -> None:
    knobs: dict[str, Value] = {"tensor_model_parallel_size": 1, "sequence_parallel": True}
    of_lm = Run(settings=settings(knobs, "run.sh", "megatron_lm"))
    of_bridge = Run(settings=settings(knobs, "config.yaml", "megatron_bridge"))
    before = Run(given=Given(core_version="0.16.1"), settings=of_bridge.settings)  # Megatron-Bridge 0.3.1
    assert [one.id for one in check_rules(of_lm) if one.level == "error"] == []
    assert [one.id for one in check_rules(of_bridge) if one.level == "error"] == []
    assert [one.id for one in check_rules(before) if one.level == "error"] == ["sequence-parallel-tp"]


def refused(backend: str, **given: object) -> list[str]:
    return [one.reason for one in refusals(Run(given=Given(**given)), backend)]  # type: ignore[arg-type]


def test_one_rank_has_no_peer_to_dispatch_to_but_hybridep_takes_it_from_0_17_1() -> None:
    assert len(refused("deepep", ep=1, etp=1, core_version="0.18.0")) == 1
    assert len(refused("hybridep", ep=1, etp=1, core_version="0.17.0")) == 1
    assert refused("hybridep", ep=1, etp=1, core_version="0.17.1") == []


def test_padding_and_the_container_without_deepep_refuse_it() -> None:
    assert refused("deepep", routing="drop_pad") == ["DeepEP cannot pad expert inputs to capacity"]
    assert refused("deepep", routing="force_balance") == []
    assert refused("deepep", container="nvcr.io/nvidia/nemo:26.02") == [
        "DeepEP is not in the NeMo 26.02 container"
    ]


def test_a_group_wider_than_a_rack_leaves_alltoall_and_says_why() -> None:
    choice = choose_dispatcher(Run(given=Given(gpu="GB200", ep=96, etp=1)))
    assert choice.first == "alltoall"
    assert any("at most 72 ranks" in one.reason for one in choice.refused)


def test_expert_ranks_divide_experts_and_fit_the_ranks_and_contexts_divide_query_groups() -> None:
    sizes = {"num_moe_experts": 64, "world_size": 24, "expert_tensor_parallel_size": 1}
    run = run_with({**sizes, "expert_model_parallel_size": 12, "pipeline_model_parallel_size": 1})
    assert rules()["experts-per-rank"].cure_of(run.view(Trust.CHECKED)).endswith("here EP 2, 4 or 8")
    sizes = {"num_attention_heads": 32, "num_query_groups": 8, "tensor_model_parallel_size": 2}
    run = run_with({**sizes, "context_parallel_size": 16, "cp_comm_type": "a2a+p2p"})
    assert rules()["context-hierarchy"].cure_of(run.view(Trust.CHECKED)).endswith("here [2, 8] or [4, 4]")


def test_a_cure_has_no_example_where_the_sizes_are_unknown() -> None:
    rule = rules()["experts-per-rank"]
    assert rule.cure_of(run_with({"num_moe_experts": 64}).view(Trust.CHECKED)) == rule.cure
