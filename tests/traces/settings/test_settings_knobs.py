"""The table of knobs: what is in it by release, each framework's spelling of it, and what they make of it."""

from __future__ import annotations

import pytest

from tests.configurations.spelling import read_back
from tests.places import DATA
from traces.settings.effective import effective, recipe
from traces.settings.knobs import Knob, by_flag, by_path, knobs, known_in, release
from traces.settings.read import read_configuration
from traces.settings.settings import Framework, Settings, Value, settings
from traces.settings.spelling import can_spell, in_section, spell


@pytest.mark.parametrize(
    ("knob", "version", "known"),
    [
        ("overlap_moe_expert_parallel_comm", "0.13.0", False),
        ("overlap_moe_expert_parallel_comm", "0.14.0", True),
        ("moe_flex_dispatcher_backend", "core_v0.16.0", True),
        ("moe_use_legacy_grouped_gemm", "0.16.1", True), ("moe_use_legacy_grouped_gemm", "0.17.0", False),
        ("moe_permute_fusion_into_hybridep", "0.17.0", False),
        ("moe_permute_fusion_into_hybridep", "0.17.1", True), ("moe_flex_dispatcher_num_sms", "main", True),
        ("moe_flex_dispatcher_num_sms", None, None), ("no_such_knob", "0.16.1", None),
    ],
)  # fmt: skip
def test_a_knob_is_known_from_its_release_on(knob: str, version: str | None, known: bool | None) -> None:
    assert known_in(knob, version) is known


def test_a_renamed_knob_has_its_name_by_release() -> None:
    modules = knobs()["cuda_graph_modules"]
    assert modules.name_in(release("0.17.1")) == "cuda_graph_scope"
    assert modules.name_in(release("0.18.0")) == modules.name_in(None) == "cuda_graph_modules"
    assert by_flag()["--cuda-graph-scope"][0][0] is by_path()["model.cuda_graph_scope"] is modules


def test_all_knobs_of_a_flag_came_and_went_with_it() -> None:
    for flag, rows in by_flag().items():
        own = [knob for knob, _ in rows if flag in (knob.flag, knob.off)]
        assert len({(knob.flag_since, knob.until) for knob in own}) <= 1
        assert len({is_off for _, is_off in rows}) == 1, "it turns all of them one way"


def test_a_default_that_moved_is_told_only_where_the_release_is() -> None:
    sms = knobs()["moe_deepep_num_sms"]
    assert sms.default_in(release("0.16.1")) == (20,)
    assert sms.default_in(release("0.19.0")) == (None,)
    assert sms.default_in(None) is None
    assert knobs()["moe_router_topk"].default_in(None) == (2,)


def test_every_recipe_of_the_table_has_fields_that_are_knobs() -> None:
    for name in knobs()["mixed_precision"].choices:
        assert recipe(name)
        assert {f"mixed_precision.{field}" for field in recipe(name)} <= knobs().keys()


def test_what_is_made_is_made_once() -> None:
    data = DATA / "settings"
    for name in ("run.sh", "bridge.yaml", "harness.sh", "log.txt"):
        once = effective(read_configuration(data / name).settings)
        assert effective(once) == once


VERSIONS = [
    None, "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.1", "0.17.0", "0.17.1", "0.18.0", "0.19.0", "main",
]  # fmt: skip
FRAMEWORKS: tuple[Framework, ...] = ("megatron_lm", "megatron_bridge")
EXAMPLES: dict[str, Value] = {"int": 3, "float": 0.25, "str": "a", "list": ("a", 2), "int|list": (0, 1, 1)}


def examples(knob: Knob) -> list[Value]:
    """Values of each form that the knob takes; null where leaving it out means that."""
    if knob.id == "pipeline_model_parallel_layout":
        return ["Et*3|(tt|)*29m|L", None]
    nulls: list[Value] = [None] if not knob.defaults or knob.defaults[-1][1] is None else []
    if knob.kind == "bool":
        return [True, False]
    if knob.choices:
        words = knob.choices
        return [words[:2] if knob.kind == "list" else words[-1], *nulls]
    if knob.kind == "int|list":
        return [2, (0, 1, 1), (1,), *nulls]
    return [EXAMPLES.get(knob.kind, 0.5), *nulls]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_spelled_is_read_back(framework: Framework, version: str | None) -> None:
    spelled = 0
    for knob in knobs().values():
        if not can_spell(knob.id, framework, version):
            continue
        for value in examples(knob):
            lines = spell({knob.id: value}, framework, version)
            if lines[0].startswith("("):
                continue  # what is left out cannot be read
            found = read_back(lines)
            assert found[knob.id] == value, lines
            assert set(found) <= with_the_same_flag(knob, framework)
            spelled += 1
    assert spelled > 190


def with_the_same_flag(knob: Knob, framework: Framework) -> set[str]:
    """Knobs that one flag of Megatron-LM sets together."""
    if framework == "megatron_bridge" or not (knob.flag or knob.off):
        return {knob.id}
    return {other.id for other, _ in by_flag()[knob.flag or knob.off]}


def test_a_knob_without_a_spelling_is_refused() -> None:
    assert not can_spell("comm_overlap.tp_comm_overlap", "megatron_lm")
    assert not can_spell("moe_flex_dispatcher_backend", "megatron_lm", "0.15.0")
    with pytest.raises(ValueError, match="no spelling"):
        spell({"comm_overlap.tp_comm_overlap": True}, "megatron_lm")


def test_overlaps_go_into_bridges_section_which_keeps_what_the_model_has_on() -> None:
    said = settings({"overlap_moe_expert_parallel_comm": True}, "run.yaml")
    delay: dict[str, Value] = {"delay_wgrad_compute": True}
    kept = {"comm_overlap.delay_wgrad_compute": True, "comm_overlap.overlap_moe_expert_parallel_comm": True}
    assert in_section(delay, said) == kept
    assert in_section(delay, said.changed({"comm_overlap.bucket_size": 1}, "x")) == {
        "comm_overlap.delay_wgrad_compute": True
    }
    assert in_section({"bf16": True}, said) == {"bf16": True}


def test_reductions_are_of_the_wrapper_unless_the_section_says_them() -> None:
    reduce: dict[str, Value] = {"ddp.overlap_grad_reduce": True}
    assert in_section(reduce, Settings()) == reduce
    section = settings({"comm_overlap.overlap_param_gather": False}, "run.yaml")
    found = in_section({**reduce, "bf16": True}, section)
    assert found == {"comm_overlap.overlap_grad_reduce": True, "bf16": True}
