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


def calls() -> Iterator[tuple[str, set[str | None], list[list[str]]]]:
    """Each call of `say` and `lacking` outside their home: where, with what figures, of which codes.

    Codes that get the figures together stand together: what is lacking, and its cure.
    """
    for path in sorted((ROOT / "heuristics").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if name not in ("say", "lacking") or path.parent.name == "words":
                continue
            assert isinstance(node, ast.Call)
            given = {one.arg: one.value for one in node.keywords}
            said = [[code] for code in codes(node.args[0])]
            if name == "lacking":
                cure = given.pop("cure", None)
                said = [[code, *(codes(cure) if cure else (f"{code}-cure",))] for [code] in said]
            yield f"{path.relative_to(ROOT)}:{node.lineno}", {*given}, said


def test_each_sentence_is_said_with_the_figures_that_it_asks_for() -> None:
    for place, given, said in calls():
        assert said, f"{place}: no such sentence"
        for together in said:
            assert SENTENCES.keys() >= {*together}, f"{place}: {together}"
            figures: set[str] = set().union(*(asked(SENTENCES[code]) for code in together))
            assert figures == given, f"{place}: {together}"


def test_no_sentence_stands_unsaid() -> None:
    said = {code for _, _, several in calls() for together in several for code in together}
    assert sorted(SENTENCES.keys() - said) == []


def test_figures_are_spelled_by_their_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heuristics.words.sentences", lambda _: {"a": "{part_frac} of {step_ns}, {ranks}"})
    assert say("walls.a", part_frac=0.25, step_ns=3_000_000, ranks=8) == "25 % of 3.00 ms, 8"
    with pytest.raises(KeyError):
        say("walls.a", ranks=8)
