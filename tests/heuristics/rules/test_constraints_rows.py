"""Every rule: one configuration that breaks it, the least change that does not, and its cure in a run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import pytest
from msgspec import convert
from msgspec.structs import replace
from packaging.version import Version

from heuristics.config.view import Config, Trust
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.rules.check import check_rules, undecided
from heuristics.rules.condition import READERS, Condition, condition
from heuristics.rules.cures import Cure, cure_in
from heuristics.rules.failures import corrections
from heuristics.rules.rules import By, Rule, known_lines, rules
from tests.configurations.constraints import read, run_with
from traces.settings.knobs import knobs
from traces.settings.settings import Value
from traces.toml_tables import WrongRow, keyed, read_rows
from traces.training_log.known_lines import KnownLine

ROWS: Final = cast(Mapping[str, Mapping[str, dict[str, object]]], read("constraint_rows.toml"))


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    assert sorted(ROWS) == sorted(rules())


Changes = dict[str, object]


def beside(rule: Rule) -> list[tuple[Config, bool]]:
    """Configurations beside a rule, each with whether it breaks the rule."""
    row = cast(dict[str, Any], ROWS[rule.id])
    changes: list[tuple[Changes, bool]] = [({}, True), (row["mends"], False)]
    changes += [(one, True) for one in row.get("still", ())]
    changes += [(one, False) for one in row.get("passes", ())]
    return [(run_with({**row["breaks"], **one}).view(Trust.CHECKED), breaks) for one, breaks in changes]


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_breaks_where_it_must_and_just_not_beside_it(rule: Rule) -> None:
    assert [rule.verdict(config) for config, _ in beside(rule)] == [breaks for _, breaks in beside(rule)]


IMPLIED: Final = frozenset(
    {
        ("layout-mtp-order", "layout_mtp > 0"),
        ("graphs-full-iteration-sync-free", "graphs"),
        ("graphs-static-parts", "graphs"),
    }
)
"""Parts that another part implies: they say which runs the rule is about."""


def without_parts(text: str) -> Iterator[tuple[str, str]]:
    """Each part that a condition joins by `and` or `or`, and the condition without it."""
    nodes = [*ast.walk(ast.parse(text, mode="eval"))]
    for at, joined in enumerate(nodes):
        for place, part in enumerate(joined.values if isinstance(joined, ast.BoolOp) else ()):
            tree = ast.parse(text, mode="eval")
            node = cast(ast.BoolOp, [*ast.walk(tree)][at])
            node.values[place] = ast.Constant(isinstance(node.op, ast.And))
            yield ast.unparse(part), ast.unparse(tree)


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_each_part_of_a_rule_decides_somewhere_beside_it(rule: Rule) -> None:
    for field in ("feature", "needs", "forbids"):
        whole: Condition | None = getattr(rule, field)
        for part, rest in without_parts(whole.text) if whole else ():
            poorer = replace(rule, **{field: condition(rest)})
            is_seen = any(poorer.verdict(config) is not breaks for config, breaks in beside(rule))
            assert is_seen != ((rule.id, part) in IMPLIED), part


def test_a_configuration_of_which_nothing_is_known_breaks_nothing() -> None:
    assert check_rules(run_with({})) == ()
    assert [*undecided(run_with({}))] == []


def test_every_rule_says_who_refuses_where_it_is_written_and_what_would_meet_it() -> None:
    for rule in rules().values():
        assert all((rule.text, rule.source, rule.cure, rule.knobs)), rule.id
        assert len(rule.id.split()) == 1


def test_the_fix_of_a_rule_is_one_that_explain_knows() -> None:
    assert {rule.fix for rule in rules().values()} <= {"", *CATALOGUE, *corrections()}


def test_a_line_that_a_rule_prints_is_a_known_one() -> None:
    assert {line for rule in rules().values() for line in rule.all_lines} <= set(known_lines().by_id)


def test_a_knob_that_meets_a_rule_is_a_knob() -> None:
    assert {knob for rule in rules().values() for knob in rule.set} <= set(knobs())


ROW = {"text": "A needs B", "cure": "B", "needs": "tp == 1"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": "ours"}, "a-rule: source 'ours' is not in sources.toml"),
        ({"source": "{nowhere}"}, "a-rule: source 'nowhere' is not in sources.toml"),
        ({"need": "tp == 1"}, "a-rule: Object contains unknown field `need`"),
        ({"by": "nobody"}, "a-rule, by: Invalid enum value 'nobody'"),
        ({"needs": "tpp == 1"}, "a-rule, needs: tpp == 1: tpp is neither a knob nor a fact"),
        ({"since": "soon"}, "a-rule, since: Invalid version: 'soon'"),
        ({"cures": {"C": "tpp == 1"}}, "a-rule, cures, C: tpp == 1: tpp is neither a knob nor a fact"),
        ({"example": "none"}, "a-rule, example: Invalid enum value 'none'"),
    ],
)
def test_a_wrong_row_is_named_with_its_file(change: dict[str, object], said: str) -> None:
    written = keyed({"a-rule": {**ROW, **change}})
    with pytest.raises(WrongRow, match=re.escape(f"layout.toml, {said}")):
        read_rows(written, dict[str, Rule], "layout.toml", READERS)


OF_BRIDGE: Final = "Megatron-Bridge, src/megatron/bridge"


@pytest.mark.parametrize(("by", "source", "since", "printed"), [
    ("core", "Megatron-Core, a.py", "0.14.0", "Megatron-LM, megatron/core/a.py, core_v0.14.0 to d98e8a64"),
    ("core", "Megatron-Core, a.py", "0.20.0", "Megatron-LM, megatron/core/a.py, d98e8a64"),
    ("core", "Megatron-Core, a.py", None, "Megatron-LM, megatron/core/a.py, core_v0.12.0 to d98e8a64"),
    # a release of one framework says nothing of another's
    ("core", "Megatron-Bridge, a.py", "0.20.0", f"{OF_BRIDGE}/a.py, v0.3.1 to 067f987d"),
    ("megatron_bridge", "Megatron-Bridge, a.py", "0.4.0", f"{OF_BRIDGE}/a.py, v0.4.0 to 067f987d"),
    ("megatron_bridge", "Megatron-LM, training/a.py", "0.6.0",
     "Megatron-LM, megatron/training/a.py, core_v0.12.0 to d98e8a64"),
])  # fmt: skip
def test_a_message_is_printed_where_its_rule_is_written_from_its_first_release_on(
    by: By, source: str, since: str | None, printed: str
) -> None:
    first = None if since is None else Version(since)
    rule = Rule(id="a-rule", text="A needs B", by=by, since=first, message=("B is needed",), source=source)
    assert rule.line == KnownLine(("B is needed",), printed, "a-rule")
    assert replace(rule, printed="b.py").line.source == "b.py"


@pytest.mark.parametrize(
    ("given", "by"),
    [
        ({}, "core"), ({"source": "{core_dispatcher}, core_v0.14.0"}, "dispatcher"),
        ({"source": "{bridge_config}"}, "megatron_bridge"),
        ({"source": "{bridge_config}", "by": "ours"}, "ours"),
        ({"source": "Megatron-Core, nccl_allocator.py"}, "core"),
    ],
)  # fmt: skip
def test_who_refuses_follows_from_where_a_rule_is_written(given: dict[str, str], by: By) -> None:
    assert convert({"id": "a-rule", "text": "A needs B", **given}, Rule).by == by


@pytest.mark.parametrize(
    ("by", "set", "cure"),
    [
        ("core", {"sequence_parallel": True}, "sequence_parallel on"),
        ("core", {"ddp.nccl_ub": False}, "ddp.nccl_ub off"),
        ("core", {"moe_ffn_hidden_size": None}, "leave moe_ffn_hidden_size out"),
        ("core", {"recompute_modules": ("moe_act", "layernorm")}, "recompute_modules moe_act layernorm"),
        ("core", {"bf16": True, "fp16": False}, "bf16 on and fp16 off"),
        ("core", {"env.NCCL_ALGO": "Ring"}, "NCCL_ALGO=Ring"),
        ("megatron_bridge", {"ddp.nccl_ub": False}, "ddp.nccl_ub=false"),
        ("megatron_bridge", {"scheduler.max_steps": None}, "scheduler.max_steps=null"),
        ("megatron_bridge", {"bf16": True}, "bf16 on"),
    ],
)  # fmt: skip
def test_a_cure_that_no_row_words_is_what_it_sets(by: By, set: dict[str, Value], cure: str) -> None:
    assert Rule(id="a-rule", text="A needs B", by=by, set=set, source="a.py").cure == cure


def test_a_release_that_a_rule_needs_is_its_cure() -> None:
    rule = Rule(id="a-rule", text="A needs B", needs=condition("te >= '2.9.0'"))
    assert (rule.cure, rule.fix) == ("Transformer Engine 2.9.0 or later", "ENV-3")
    assert Rule(id="a-rule", text="A needs B", needs=rule.needs, cure="no A").fix == ""


DENSE = {"num_moe_experts": "null", "expert_model_parallel_size": 8}
DEEPEP = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
BIAS = {"num_moe_experts": 8, "add_bias_linear": True, "core": "0.14.0"}
FUSED = {"bias_activation_fusion": True, "activation_func": "gelu", "gated_linear_unit": False}
PLAIN = {"mixed_precision": "bf16_mixed"}
AMPERE = {"mb": True, "mixed_precision": "bf16_with_mxfp8_mixed", "capability": "8.0"}
VOLTA = {"lm": True, "moe_grouped_gemm": True, "capability": "7.0"}


@pytest.mark.parametrize(
    ("rule", "said", "cure", "beside", "then"),
    [
        ("experts-for-ep", DENSE, {"expert_model_parallel_size": 1}, {}, []),
        # what another rule asks for then goes with it
        ("expert-bias-none", BIAS, {"add_bias_linear": False}, {}, []),
        (
            "expert-bias-none",
            BIAS | FUSED,
            {"add_bias_linear": False, "bias_activation_fusion": False},
            {"bias_activation_fusion": False},
            [],
        ),
        # nothing is set where that breaks a rule that no setting meets, or one that takes it back
        (
            "experts-for-ep",
            DENSE | DEEPEP | {"tensor_model_parallel_size": 1, "expert_tensor_parallel_size": 1},
            {},
            {},
            ["deepep-one-rank"],
        ),
        ("grouped-gemm-gpu", VOLTA | {"moe_use_grouped_tensor": True}, {}, {}, ["grouped-tensor"]),
        # a recipe that writes over the cure is changed with it
        (
            "fp8-gpu",
            AMPERE,
            {"fp8": None, "mixed_precision": "bf16_mixed"},
            {"mixed_precision": "bf16_mixed"},
            [],
        ),
        # a rule that was broken before is no reason
        ("grouped-gemm-gpu", VOLTA | DENSE, {"moe_grouped_gemm": False}, {}, []),
    ],
)
def test_a_cure_breaks_nothing_that_was_whole(
    rule: str, said: dict[str, object], cure: dict[str, object], beside: dict[str, object], then: list[str]
) -> None:
    found = cure_in(run_with(said), rules()[rule])
    assert (found.set, found.beside, [one.id for one in found.then]) == (cure, beside, then)


def test_a_rule_that_names_no_setting_has_no_cure_to_type() -> None:
    rule = next(one for one in rules().values() if not one.set)
    found = cure_in(run_with(DENSE), rule)
    assert (found.set, found.beside, found.then) == ({}, {}, ())


def test_a_recipe_is_changed_only_where_there_is_one() -> None:
    """Two halves that a cure without FP8 leaves, and a recipe would write over."""
    rule = replace(rules()["precision-two-halves"], set={"fp8": None})
    assert cure_in(run_with({"mb": True, "bf16": True, "fp16": True}), rule) == Cure({}, {})
    run = run_with({"mb": True, "mixed_precision": "bf16_with_mxfp8_mixed", "capability": "8.0"})
    assert cure_in(run, replace(rules()["fp8-gpu"], set={"num_layers": 4})) == Cure({}, {})  # FP8 stays
