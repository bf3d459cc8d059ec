"""Which sentences stand in the code: the list from which a kept result is read again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.places import ROOT

_ROOMS: Final = ("traces", "heuristics", "reports/result", "diagnoser/running", "diagnoser/commands")
"""Where texts of documents are made."""
_SENTENCE: Final = re.compile(r"[A-Za-z]{2}.* |.* [A-Za-z]{2}")
_GAP: Final = "{}"


def said_in_code() -> list[str]:
    """Every text of the code that reads as words, in order; `{}` stands for what is filled in."""
    found = {
        text
        for room in _ROOMS
        for path in (ROOT / room).rglob("*.py")
        for text in _texts(ast.parse(path.read_text(encoding="utf-8")))
    }
    return sorted(text for text in found if _is_sentence(text))


def _is_sentence(text: str) -> bool:
    return text.isprintable() and _SENTENCE.search(text) is not None and "\\" not in text


def _texts(node: ast.AST) -> Iterator[str]:
    """Texts and texts with gaps; no docstring."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(_piece(part) for part in node.values)
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from _texts(child)


def _piece(part: ast.expr) -> str:
    is_text = isinstance(part, ast.Constant) and isinstance(part.value, str)
    return part.value if is_text else _GAP  # type: ignore[attr-defined]
