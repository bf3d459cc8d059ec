"""The exit codes: one list, which pages, help and documents follow; and what a comparison ends with."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

import diagnoser
from diagnoser.cli import COMMANDS, run
from heuristics.result.compared import ComparisonVerdict, exit_of
from heuristics.result.exits import Exit
from heuristics.result.gate import Gate, GateAnswer, GateState
from tests.places import ROOT


def test_the_page_of_usage_has_a_row_for_each_exit_code() -> None:
    page = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    part = page.partition("## Exit codes")[2].partition("## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)] == [*Exit]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_exit_code_of_a_help_is_one_of_the_list(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == Exit.DONE
    if "--help-all" in (text := capsys.readouterr().out):
        assert run([name, "--help-all"]) == Exit.DONE
        text = capsys.readouterr().out
    told = " ".join(text.split()).partition("Exit code ")[2]
    codes = {int(code) for code in re.findall(r"(?:^|[;.] (?:\w+ )*)(\d+):", told)}
    assert codes <= {*Exit}
    if name == "compare":
        assert codes == {*range(7)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"undecided": "pass"}, "--undecided pass is the answer of a gate, and there is none. Add --gate 3%"),
        (
            {"gate": "3%", "not_comparable": "maybe"},
            "--not-comparable 'maybe' is no answer. Give pass or fail.",
        ),
    ],
)
def test_an_answer_without_a_gate_and_one_that_is_none_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(diagnoser.UsageError) as refused:
        diagnoser.compare("none.sqlite", "none.sqlite", **given)
    assert str(refused.value) == said


VERDICTS: dict[ComparisonVerdict, Exit] = {
    "regression": Exit.DONE, "improvement": Exit.DONE, "no_change": Exit.DONE, "undecided": Exit.UNDECIDED,
    "not_comparable": Exit.NOT_COMPARABLE,
}  # fmt: skip
GATES: dict[tuple[GateState, GateAnswer | None], Exit] = {
    ("passed", "pass"): Exit.DONE,
    ("tripped", "fail"): Exit.NO,
    ("undecided", "pass"): Exit.DONE,
    ("undecided", "fail"): Exit.NO,
    ("passed", None): Exit.DONE,  # a result from before there was an answer
    ("tripped", None): Exit.NO,
    ("undecided", None): Exit.NO,
}


def test_each_verdict_has_its_code_and_each_gate_overrules_all_of_them() -> None:
    assert {*VERDICTS} == {*get_args(ComparisonVerdict)}
    for verdict, code in VERDICTS.items():
        assert exit_of(verdict, None) == code
        for (state, answer), gated in GATES.items():
            gate = Gate(0.03, state, "") if answer is None else Gate(0.03, state, "", answer)
            assert exit_of(verdict, gate) == gated
