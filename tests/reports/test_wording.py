"""Sentences that the program ships use the plain words of the field."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.places import ROOT

RIDDLES = re.compile(
    r"\b(told|tells?|telling|said|says?|shown|mend(s|ed|ing)?|handicaps?|prices?|priced|wins?|won|winner"
    r"|unsaid|untold|unpriced)\b",
    re.IGNORECASE,
)
PACKAGES = ("traces", "heuristics", "reports", "diagnoser")
OTHERS = ("known_lines.toml", "known_names.toml")
"""Tables of texts that frameworks print."""


def sentences(path: Path) -> Iterator[str]:
    """Texts of several words that are no docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        yield from _texts(tomllib.loads(text))
        return
    tree = ast.parse(text)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def _texts(held: object) -> Iterator[str]:
    if isinstance(held, str):
        yield held
    elif isinstance(held, dict | list):
        for one in held.values() if isinstance(held, dict) else held:
            yield from _texts(one)


def test_no_shipped_sentence_speaks_in_riddles() -> None:
    found = []
    for package in PACKAGES:
        for path in sorted((*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.toml"))):
            place = path.relative_to(ROOT).as_posix()
            if path.name in OTHERS:
                continue
            found += [(place, one) for one in sentences(path) if " " in one.strip() and RIDDLES.search(one)]
    assert found == []
