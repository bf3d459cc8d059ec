"""Every rule: one configuration that breaks it, and the least change of it that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.rules.check import check_rules, undecided
from heuristics.rules.failures.corrections import corrections
from heuristics.rules.rule import verdict
from heuristics.rules.rules import SUBJECTS, WrongRow, rows, rules
from tests.constraint_doubles import read, run_with
from traces.settings.knobs import knobs
from traces.training_log.known_lines import known_lines

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
    assert {line for rule in rules().values() for line in rule.lines} <= set(known_lines())


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
        ({"by": "ours"}, "source 'ours' is not in sources.toml"),
        ({"source": "{nowhere}"}, "source 'nowhere' is not in sources.toml"),
        ({"need": "tp == 1"}, "Object contains unknown field `need`"),
        ({"by": "nobody"}, "Invalid enum value 'nobody' - at `$.by`"),
        ({"needs": "tpp == 1"}, "tpp == 1: tpp is neither a knob nor a fact"),
        ({"example": "none"}, "example 'none' is none of heuristics/rules/examples.py"),
    ],
)
def test_a_wrong_row_is_named_with_its_file(
    change: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {"layout": [{**ROW, **change}]}
    monkeypatch.setattr("heuristics.rules.rules._written", lambda subject: written.get(subject, []))
    rules.cache_clear()
    try:
        with pytest.raises(WrongRow, match=re.escape(f"heuristics/rules/layout.toml, a-rule: {said}")):
            rules()
    finally:
        rules.cache_clear()
