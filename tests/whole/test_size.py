"""The house grows nowhere: what needs more takes it from elsewhere, or edits size.toml with its reason.

Counted are tokens of Python without comments, docstrings and imports, statements, limits, conditional
expressions and comprehensions, of each folder of the product; and the lines of all tests.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.places import DATA, ROOT

PACKAGES = ("moe_diag", "diagnoser", "traces", "heuristics", "reports")
UNCOUNTED = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
}
KINDS = ("tokens", "statements", "limits", "conditionals", "comprehensions")


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _is_text_or_import(node: ast.AST) -> bool:
    text = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return text or isinstance(node, ast.Import | ast.ImportFrom)


def sizes(text: str) -> Counter[str]:
    """Tokens, statements and limits of a module."""
    nodes = [*ast.walk(ast.parse(text))]
    left_out = {
        line
        for node in nodes
        if isinstance(node, ast.stmt) and _is_text_or_import(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = [
        token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in UNCOUNTED
    ]
    limits = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Limit"]
    statements = [node for node in nodes if isinstance(node, ast.stmt) and not _is_text_or_import(node)]
    return Counter(
        tokens=sum(token.start[0] not in left_out for token in tokens),
        statements=len(statements),
        limits=len(limits),
        conditionals=sum(isinstance(node, ast.IfExp) for node in nodes),
        comprehensions=sum(isinstance(node, COMPREHENSIONS) for node in nodes),
    )


def folder_of(path: Path) -> str:
    """`traces/account`; what lies in a package itself is of the package."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:2])


def found() -> dict[str, Counter[str]]:
    """What each folder of the product holds."""
    counted: dict[str, Counter[str]] = {}
    for path in modules():
        counted.setdefault(folder_of(path), Counter()).update(sizes(path.read_text(encoding="utf-8")))
    return counted


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def test_no_folder_holds_more_than_it_may() -> None:
    allowed = tomllib.loads((DATA / "size.toml").read_text(encoding="utf-8"))["folder"]
    over = {
        f"{folder}: {kind}": (counted[kind], allowed.get(folder, {}).get(kind, 0))
        for folder, counted in found().items()
        for kind in KINDS
        if counted[kind] > allowed.get(folder, {}).get(kind, 0)
    }
    assert over == {}, "more than size.toml allows: (found, allowed)"


def lines_of_tests() -> int:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    return sum(len(text.splitlines()) for text in texts)


def test_the_tests_are_no_longer_than_they_may_be() -> None:
    allowed = tomllib.loads((DATA / "size.toml").read_text(encoding="utf-8"))["tests"]["lines"]
    assert lines_of_tests() <= allowed


def test_no_conditional_stands_inside_a_conditional() -> None:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.IfExp):
                inner = [one for one in ast.walk(node) if isinstance(one, ast.IfExp)]
                assert inner == [node], f"{path}:{node.lineno}"


def test_comments_docstrings_and_imports_are_not_counted() -> None:
    text = '"""What it is."""\n\nimport ast\n\nA = 1  # one\nLEAST = Limit(2, "ns", "why")\n'
    assert sizes(text) == Counter(tokens=3 + 10, statements=2, limits=1, conditionals=0, comprehensions=0)


if __name__ == "__main__":  # the figures of today
    print(f"lines = {lines_of_tests()}")
    for folder, counted in found().items():
        print(f'"{folder}" = {{ {", ".join(f"{kind} = {counted[kind]}" for kind in KINDS)} }}')
