"""What may stand in another's place: fields and parameters of like type, over the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_UNITS = ("_ns", "_frac", "_bytes")


@dataclass(frozen=True)
class Siblings:
    """`fields`: a field's name -> fields of like type beside it in every class that has it; `parameters`: a
    function's name -> types of its parameters in order, for names that one function alone has."""

    fields: dict[str, tuple[str, ...]]
    parameters: dict[str, tuple[str, ...]]


def siblings_of(trees: Iterable[ast.Module]) -> Siblings:
    """Read all classes and functions of the product once."""
    classes: dict[str, list[set[str]]] = defaultdict(list)
    functions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for name, others in _alike(node).items():
                    classes[name].append(others)
            elif isinstance(node, ast.FunctionDef):
                functions[node.name].append(_types(node))
    fields = {name: tuple(sorted(set.intersection(*found))) for name, found in classes.items()}
    parameters = {name: found[0] for name, found in functions.items() if len(found) == 1}
    return Siblings({name: others for name, others in fields.items() if others}, parameters)


def _alike(node: ast.ClassDef) -> dict[str, set[str]]:
    typed = [
        (line.target.id, _like(line.target.id, ast.unparse(line.annotation)))
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    ]
    return {name: {other for other, like in typed if like == mine and other != name} for name, mine in typed}


def _types(node: ast.FunctionDef) -> tuple[str, ...]:
    arguments = [one for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]
    return tuple(_like(one.arg, ast.unparse(one.annotation) if one.annotation else "") for one in arguments)


def _like(name: str, annotation: str) -> str:
    """A type and the unit in the name: nanoseconds stand in for nanoseconds."""
    return annotation + next((unit for unit in _UNITS if name.endswith(unit)), "")
