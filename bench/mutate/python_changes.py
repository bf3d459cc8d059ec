"""Every small wrong line that a file of Python could have: operators, edges, guards, arguments, columns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from bench.mutate.mutant import Mutant
from bench.mutate.siblings import Siblings

_Change = tuple[ast.expr | ast.stmt, str, str]
"""What is replaced, by which text, of which kind."""

_EDGES = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_REVERSED = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "=="}
_MEMBERS = {ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_ARITHMETIC = {
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"},
    **{ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<"},
}
_NAMES = {
    **{"any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"},
    **{"argmin": "argmax", "argmax": "argmin"},
}
_TEXTS = {"left": "right", "right": "left"}
_ASSERTED: Final = frozenset({"strict", "frozen", "forbid_unknown_fields"})
"""Keywords that only refuse what the program never does: a shorter `zip`, a changed struct, unknown keys."""


def changes(file: str, source: str, siblings: Siblings) -> Iterator[Mutant]:
    """The mutants of one file, in the order of its text."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in _inside(tree):
        for replaced, text, kind in _of_node(node, source, siblings):
            start = place(replaced.lineno, replaced.col_offset)
            end = place(replaced.end_lineno or replaced.lineno, replaced.end_col_offset or 0)
            yield Mutant(file, replaced.lineno, start, end, text, kind)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run: no docstring, annotation, decorator, text of an error, assertion."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_said(child):
                yield child
                yield from _inside(child)


def _is_said(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in _ASSERTED
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _of_node(node: ast.AST, source: str, siblings: Siblings) -> Iterator[_Change]:
    for kind, of_kind in _KINDS.items():
        for replaced, text in of_kind(node, source):
            yield replaced, text, kind
    if isinstance(node, ast.Call):
        yield from _swapped(node, source, siblings)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        for other in siblings.fields.get(node.attr, ())[:2]:
            yield node, f"{_text(node.value, source)}.{other}", "column"


_Made = Iterator[tuple[ast.expr | ast.stmt, str]]


def _edges(node: ast.AST, source: str) -> _Made:
    yield from _compared(node, source, _EDGES)


def _comparisons(node: ast.AST, source: str) -> _Made:
    yield from _compared(node, source, _REVERSED)
    yield from _compared(node, source, _MEMBERS)


def _compared(node: ast.AST, source: str, table: dict[type[ast.cmpop], str]) -> _Made:
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or type(node.ops[0]) not in table:
        return
    left, right = _text(node.left, source), _text(node.comparators[0], source)
    yield node, f"{left} {table[type(node.ops[0])]} {right}"


def _arithmetic(node: ast.AST, source: str) -> _Made:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = (_bound(side, source) for side in (node.left, node.right))
        yield node, f"({left} {_ARITHMETIC[type(node.op)]} {right})"


def _bound(node: ast.expr, source: str) -> str:
    """In brackets where an operator stands in it."""
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Subscript)
    return _text(node, source) if plain else f"({_text(node, source)})"


def _logic(node: ast.AST, source: str) -> _Made:
    if isinstance(node, ast.BoolOp):
        words = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        values = [f"({_text(value, source)})" for value in node.values]
        yield node, f"({words[1].join(values)})"
        for place in range(len(values)):
            yield node, f"({words[0].join(values[:place] + values[place + 1 :])})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield node, f"({_text(node.operand, source)})"


def _words(node: ast.AST, source: str) -> _Made:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        yield node, _NAMES[node.id]
    if isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield node, f"{_text(node.value, source)}.{_NAMES[node.attr]}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _TEXTS:
        yield node, repr(_TEXTS[node.value])


def _numbers(node: ast.AST, source: str) -> _Made:
    del source
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float, bool):
        return
    if isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node.value, int):
        yield node, str(node.value + 1 if node.value < 5 else node.value * 2)
    elif isinstance(node.value, float):
        yield node, repr(node.value * 2 or 1.0)


def _guards(node: ast.AST, source: str) -> _Made:
    """A way out that is never taken, and a filter that lets all through."""
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Return | ast.Continue | ast.Break):
        yield node.test, f"False and ({_text(node.test, source)})"
    elif isinstance(node, ast.If) and not node.orelse:
        yield node.test, f"True or ({_text(node.test, source)})"
    for test in node.ifs if isinstance(node, ast.comprehension) else ():
        yield test, "True"


def _branches(node: ast.AST, source: str) -> _Made:
    if isinstance(node, ast.IfExp):
        yield node, f"({_text(node.body, source)})"
        yield node, f"({_text(node.orelse, source)})"


def _ends(node: ast.AST, source: str) -> _Made:
    """The other end of a sequence, and one place beside."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return
    whole, place = _text(node.value, source), _text(node.slice, source)
    other = {"0": "-1", "-1": "0", "1:": ":-1", ":-1": "1:"}.get(place)
    if other is not None:
        yield node, f"{whole}[{other}]"


_KINDS: dict[str, Callable[[ast.AST, str], _Made]] = {
    "edge": _edges,
    "comparison": _comparisons,
    "arithmetic": _arithmetic,
    "logic": _logic,
    "word": _words,
    "number": _numbers,
    "guard": _guards,
    "branch": _branches,
    "end": _ends,
}


SYMMETRIC: Final = frozenset(
    {
        *("intersect", "same_size", "same_recording", "same_capture", "same_classes", "same_count"),
        *("_same_count", "_near_each", "_near_in_most", "_often_the_same", "_exchange_rows", "_belong"),
        *("shared_work_frac", "same_amount", "weigh", "common", "least_p"),
    }
)
"""Functions that say the same whichever of their arguments comes first: nothing could see these swapped."""


def _swapped(node: ast.Call, source: str, siblings: Siblings) -> Iterator[_Change]:
    """Two arguments side by side whose types are alike."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    types = siblings.parameters.get(name, ())
    if name in SYMMETRIC or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    for (one, two), (mine, other) in zip(pairwise(node.args), pairwise(types), strict=False):
        first, second = _text(one, source), _text(two, source)
        if mine == other and first != second:
            start = _text(node, source)
            swapped = f"{second}, {first}"
            between = _between(one, two, source)
            if between is not None and start.count(between) == 1:
                yield node, start.replace(between, swapped), "arguments"


def _between(one: ast.expr, two: ast.expr, source: str) -> str | None:
    """Both arguments as they are written, with what stands between them."""
    whole = ast.Constant(
        None, lineno=one.lineno, col_offset=one.col_offset,
        end_lineno=two.end_lineno, end_col_offset=two.end_col_offset,
    )  # fmt: skip
    return ast.get_source_segment(source, whole)


def _text(node: ast.AST, source: str) -> str:
    return ast.get_source_segment(source, node) or ast.unparse(node)
