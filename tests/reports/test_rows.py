"""Fields that pages ask rows for by name: each is a field or property of a class of the product."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.whole.test_size import modules

OF_LIBRARIES = {"cell_len", "param_type_name"}
"""Of rich's segments and click's parameters."""


def _nodes() -> Iterator[ast.AST]:
    for path in modules():
        yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def _fields(of: ast.ClassDef) -> Iterator[str]:
    for node in of.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.FunctionDef):
            yield node.name


def _asked(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Name) and call.func.id == "those":
        yield from (one.arg for one in call.keywords if one.arg)
    if isinstance(call.func, ast.Name) and call.func.id in ("each", "known_of"):
        for one in call.args[1:]:
            if isinstance(one, ast.Constant):
                yield from str(one.value).split(".")


def test_rows_are_asked_for_fields_that_there_are() -> None:
    nodes = [*_nodes()]
    fields = {name for one in nodes if isinstance(one, ast.ClassDef) for name in _fields(one)}
    asked = {name for one in nodes if isinstance(one, ast.Call) for name in _asked(one)}
    assert len(asked) > 20
    assert asked - fields == OF_LIBRARIES
