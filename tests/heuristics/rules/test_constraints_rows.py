"""Every rule: one configuration that breaks it, and the least change of it that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

import pytest
from packaging.version import Version

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.rules.check import check_rules, undecided
from heuristics.rules.condition import READERS
from heuristics.rules.failures import corrections
from heuristics.rules.rules import SUBJECTS, Rule, known_lines, rows, rules, verdict
from tests.constraint_doubles import read, run_with
from traces.settings.knobs import knobs
from traces.toml_tables import WrongRow, read_rows
from traces.training_log.known_lines import KnownLine

ROWS: Final = cast(Mapping[str, Mapping[str, dict[str, object]]], read("constraint_rows.toml"))


def test_every_rule_has_a_row_and_every_row_a_rule() -> None:
    assert sorted(ROWS) == sorted(rules())


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_breaks_where_it_must_and_just_not_beside_it(rule: object) -> None:
    one = rules()[rule.id]  # type: ignore[attr-defined]
    row = ROWS[one.id]
    assert verdict(one, run_with(row["breaks"]).validated) is True
    assert verdict(one, run_with({**row["breaks"], **row["mends"]}).validated) is False


def test_a_configuration_of_which_nothing_is_known_breaks_nothing() -> None:
    assert check_rules(run_with({})) == ()
    assert undecided(run_with({})) == ()


def test_a_rule_speaks_of_the_knobs_that_break_it() -> None:
    about = {
        "core",
        "bridge",
        "te",
        "torch",
        "gpu",
        "capability",
        "packed",
        "stage",
        "nccl",
        "lm",
        "mb",
        "container",
    }
    context = {"pipeline_model_parallel_size", "tensor_model_parallel_size", "context_parallel_size"}
    for rule in rules().values():
        row = ROWS[rule.id]
        spoken = {*row["breaks"], *row["mends"]} - about - context
        assert spoken & set(rule.knobs), rule.id
        assert set(row["mends"]) & {*rule.knobs, *about, *context}, rule.id


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


def test_no_rule_is_written_twice() -> None:
    written = [row.id for subject in SUBJECTS for row in rows(subject)]
    assert len(written) == len(set(written))


def test_breaking_any_row_is_told_as_the_rule_has_it() -> None:
    for rule in (one for one in rules().values() if one.level != "guide"):
        found = {one.id: one for one in check_rules(run_with(ROWS[rule.id]["breaks"]))}
        assert (found[rule.id].text, found[rule.id].level) == (rule.text, rule.level)


ROW = {"id": "a-rule", "text": "A needs B", "by": "core", "cure": "B", "needs": "tp == 1"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": "ours"}, "rule a-rule: source 'ours' is not in sources.toml"),
        ({"source": "{nowhere}"}, "rule a-rule: source 'nowhere' is not in sources.toml"),
        ({"need": "tp == 1"}, "rule a-rule: Object contains unknown field `need`"),
        ({"by": "nobody"}, "rule a-rule, by: Invalid enum value 'nobody'"),
        ({"needs": "tpp == 1"}, "rule a-rule, needs: tpp == 1: tpp is neither a knob nor a fact"),
        ({"since": "soon"}, "rule a-rule, since: Invalid version: 'soon'"),
        ({"cures": {"C": "tpp == 1"}}, "rule a-rule, cures, C: tpp == 1: tpp is neither a knob nor a fact"),
        ({"example": "none"}, "rule a-rule, example: Invalid enum value 'none'"),
    ],
)
def test_a_wrong_row_is_named_with_its_file(change: dict[str, object], said: str) -> None:
    written = {"rule": [{**ROW, **change}]}
    with pytest.raises(WrongRow, match=re.escape(f"layout.toml, {said}")):
        read_rows(written, dict[str, tuple[Rule, ...]], "layout.toml", READERS)


def test_a_message_is_printed_where_its_rule_is_written_from_its_first_release_on() -> None:
    rule = Rule(id="a-rule", text="A needs B", by="core", since=Version("0.14.0"), message=("B is needed",))
    file = "Megatron-LM, megatron/core/transformer/transformer_config.py"
    source = f"{file}, core_v0.14.0 to d98e8a64"
    assert rule.line == KnownLine(("B is needed",), source, "a-rule")


def test_a_message_is_printed_where_its_row_says_so() -> None:
    rule = Rule(id="a-rule", text="A needs B", by="core", message=("B is needed",), printed="b.py, main")
    assert rule.line.source == "b.py, main"
