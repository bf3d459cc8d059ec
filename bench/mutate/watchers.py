"""The tests that could see a mutant, the likeliest and quickest first."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from bench.mutate.mutant import Mutant
from bench.mutate.seen import PRODUCT, Seen
from tests.places import ROOT

KEPT: Final = "tests/whole/test_kept_"
"""Tests that hold whole documents, and so see most of what any line does."""


def watchers(mutant: Mutant, seen: Seen) -> list[str]:
    """In order: a row's; the folder's own (new ones always) and kept ones, one of a file before a second."""
    own = f"tests/{Path(mutant.file).parent}/"
    row = _row(mutant)
    is_python = mutant.file.endswith(".py")
    found = _by_lines(mutant, seen) if is_python else _by_words(mutant, row, seen)
    if not found:  # what runs as a module is loaded is in no test's own time
        found = {name for name in seen.took_s if name.startswith((own, KEPT))} - seen.failed
    found |= {name for name in seen.new if name.startswith(own)}
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in sorted(found, key=lambda name: seen.took_s[name]):
        by_file[name.partition("::")[0]].append(name)
    placed = [
        (f"[{row}]" not in name, place, not file.startswith((own, KEPT)), seen.took_s[name], name)
        for file, names in by_file.items()
        for place, name in enumerate(names)
    ]
    return [name for *_, name in sorted(placed)]


def _by_lines(mutant: Mutant, seen: Seen) -> set[str]:
    last = mutant.line + _text(mutant.file)[mutant.start : mutant.end].count("\n")
    names = _named_outside(mutant.file, mutant.line)
    if names is None:
        return seen.of_lines(mutant.file, range(mutant.line, last + 1))
    users = _users(names)
    return {test for file, lines in users.items() for test in seen.of_lines(file, lines)} or seen.of_lines(
        mutant.file, None
    )


def _row(mutant: Mutant) -> str:
    """The row of a table that a mutant lies in; nothing for a line of Python."""
    if mutant.file.endswith(".py"):
        return ""
    before = _text(mutant.file)[: mutant.end]
    rows = re.findall(r"^\[+([\w.\"-]+)\]+", before, re.MULTILINE)
    return rows[-1].strip('"').rpartition(".")[2] if rows else ""


def _by_words(mutant: Mutant, word: str, seen: Seen) -> set[str]:
    """A table: the tests of its folder, those that name its row, and kept documents."""
    folder = str(Path(mutant.file).parent)
    files = {file for file, text in _tests().items() if word and word in text}
    mine = f"tests/{folder}/"
    return {
        name
        for name in seen.took_s
        if name not in seen.failed and (name.startswith((mine, KEPT)) or name.partition("::")[0] in files)
    }


def _named_outside(file: str, line: int) -> tuple[str, ...] | None:
    """None for a line of a function's body; else the names by which the program knows the line."""
    names: tuple[str, ...] = ()
    node: ast.AST = _tree(file)
    while True:
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt) and _holds(one, line)]
        if not inner:
            return names
        node = inner[0]
        if isinstance(node, ast.FunctionDef):
            return None if line >= node.body[0].lineno else (*names, node.name)
        if isinstance(node, ast.ClassDef):
            names = (*names, node.name)
        else:
            stored = [one.id for one in ast.walk(node) if _is_stored(one)]  # type: ignore[attr-defined]
            names = (*names, *stored)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _users(names: tuple[str, ...]) -> dict[str, list[int]]:
    """Lines of the product that say one of the names."""
    if not names:
        return {}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    found: dict[str, list[int]] = {}
    for file in _product():
        lines = [number for number, line in enumerate(_text(file).splitlines(), 1) if pattern.search(line)]
        if lines:
            found[file] = lines
    return found


@cache
def _product() -> tuple[str, ...]:
    return tuple(
        str(path.relative_to(ROOT)) for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))
    )


@cache
def _tests() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / "tests").rglob("test_*.py")
    }


@lru_cache(maxsize=1024)
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@lru_cache(maxsize=128)
def _tree(file: str) -> ast.Module:
    return ast.parse(_text(file))
