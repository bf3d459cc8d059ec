"""Every sentence of the tables is said with the figures that it asks for, and none stands there unsaid."""

import ast
from collections.abc import Iterator
from string import Formatter

import pytest

from heuristics.words import say, sentences
from tests.places import ROOT

SENTENCES = {
    f"{table.stem}.{name}": text
    for table in sorted((ROOT / "heuristics" / "words").glob("*.toml"))
    for name, text in sentences(table.stem).items()
}


def asked(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def codes(code: ast.expr) -> list[str]:
    """The codes that a call may give: the one written, or all that begin as an f-string does."""
    if isinstance(code, ast.Constant):
        return [str(code.value)]
    if isinstance(code, ast.IfExp):
        return codes(code.body) + codes(code.orelse)
    assert isinstance(code, ast.JoinedStr), f"line {code.lineno}: say() takes a code as text"
    assert isinstance(code.values[0], ast.Constant), f"line {code.lineno}: a code begins with its subject"
    start = str(code.values[0].value)
    assert "." in start, f"line {code.lineno}: a code begins with its subject"
    return [name for name in SENTENCES if name.startswith(start)]


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted((ROOT / "heuristics").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_each_sentence_is_said_with_the_figures_that_it_asks_for() -> None:
    for place, call in calls():
        given = {one.arg for one in call.keywords}
        assert codes(call.args[0]), f"{place}: no such sentence"
        for code in codes(call.args[0]):
            assert code in SENTENCES, f"{place}: {code}"
            assert asked(SENTENCES[code]) == given, f"{place}: {code}"


def test_no_sentence_stands_unsaid() -> None:
    said = {code for _, call in calls() for code in codes(call.args[0])}
    assert sorted(SENTENCES.keys() - said) == []


def test_figures_are_spelled_by_their_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heuristics.words.sentences", lambda _: {"a": "{part_frac} of {step_ns}, {ranks}"})
    assert say("walls.a", part_frac=0.25, step_ns=3_000_000, ranks=8) == "25 % of 3.00 ms, 8"
    with pytest.raises(KeyError):
        say("walls.a", ranks=8)
