"""The house: imports go one way, the wheel holds our packages, every public name is documented."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from diagnoser.demo import unpack
from tests.places import ROOT
from tests.read_back.source import MAY_IMPORT, MODULES, imported, name_of, parsed

HEAVY = (
    *("numpy", "pandas", "sqlite_utils", "matplotlib", "jinja2", "rich", "yaml", "torch", "megatron"),
    *("distributed", "dask", "mcp"),
)


ORDER = {
    "traces": "statistics files recording names settings sections training_log formats witness sizes account "
    "addresses steps replay resolve measure ranks",
    "heuristics": "words result config facts figures run rules walls guides fixes plan comparison incidents "
    "layouts workflow findings evidence judging",
    "reports": "result content write",
    "diagnoser": "demo megatron options output running history agent commands",
    "moe_diag": "",
}
"""Folders of each package: none imports what comes after it."""


@cache
def import_graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports: at its top, in a function, for its types."""
    paths = {name_of(path): path for path in MODULES}
    return {name: ({*imported(path, paths)} & {*paths}) - {name} for name, path in paths.items()}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that import each other, directly or by others (Tarjan's strong components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()
    found: list[set[str]] = []

    def visit(one: str) -> None:
        order[one] = low[one] = len(order)
        stack.append(one)
        waiting.add(one)
        for other in sorted(graph[one]):
            if other not in order:
                visit(other)
            if other in waiting:
                low[one] = min(low[one], low[other])
        if low[one] == order[one]:
            place = stack.index(one)
            if len(together := set(stack[place:])) > 1:
                found.append(together)
            waiting.difference_update(together)
            del stack[place:]

    for one in graph:
        if one not in order:
            visit(one)
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(import_graph()) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    folders = {name_of(path): name_of(path.parent / "__init__.py") for path in MODULES}
    loose = {name: name if folder in MAY_IMPORT else folder for name, folder in folders.items()}
    graph: dict[str, set[str]] = {folder: set() for folder in loose.values()}
    for name, others in import_graph().items():
        graph[loose[name]] |= {loose[other] for other in others} - {loose[name]}
    assert circles(graph) == []


def test_folders_of_a_package_import_in_their_order() -> None:
    for name, others in import_graph().items():
        package, _, inner = name.partition(".")
        order, room = ORDER[package].split(), inner.split(".")[0]
        if room in order:
            later = tuple(f"{package}.{one}." for one in order[order.index(room) + 1 :])
            wrong = [other for other in others if f"{other}.".startswith(later)]
            assert wrong == [], f"{name} imports {wrong}"


def test_imports_go_one_way() -> None:
    for path in MODULES:
        ours = {name.split(".")[0] for name in imported(path)} & {*MAY_IMPORT, "tests", "bench"}
        assert ours <= MAY_IMPORT[path.relative_to(ROOT).parts[0]], path


def public(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{prefix}{node.name}.")


def test_modules_types_and_facts_are_documented() -> None:
    """Of facts every function that its module offers; elsewhere a name may be enough."""
    for path in MODULES:
        assert ast.get_docstring(parsed(path)), f"{path}: the module says what it is"
        facts = path.relative_to(ROOT).parts[0] == "traces"
        silent = [
            name
            for name, node in public(parsed(path))
            if isinstance(node, ast.ClassDef)
            or (facts and isinstance(node, ast.FunctionDef) and "." not in name)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not ast.get_docstring(node)
        ]
        assert silent == [], path


def test_files_and_functions_stay_readable() -> None:
    for path in MODULES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno
                assert length < 70, f"{path.name}:{node.name} does not fit on a screen"


def test_every_test_file_has_a_name_of_its_own() -> None:
    names = [path.name for place in ("tests", "bench") for path in (ROOT / place).rglob("test_*.py")]
    assert sorted({*names}) == sorted(names)


def test_tests_stand_in_the_folder_of_what_they_test() -> None:
    for package in MAY_IMPORT:
        folders = {path.parent for path in (ROOT / "tests" / package).rglob("test_*.py")}
        assert folders
        assert {one for one in folders if not (ROOT / one.relative_to(ROOT / "tests")).is_dir()} == set()


def test_slow_files_are_files() -> None:
    named = (ROOT / "tests" / "data" / "slow_files.txt").read_text(encoding="utf-8").split()
    assert named == sorted({path.name for path in (ROOT / "tests").rglob("test_*.py")} & {*named})


def test_long_files_are_files_or_folders() -> None:
    named = (ROOT / "tests" / "data" / "long_files.txt").read_text(encoding="utf-8").split()
    assert named == sorted(one for one in named if (ROOT / one).exists())


def test_only_the_door_prints_or_exits() -> None:
    for path in MODULES:
        if path.name in {"__main__.py", "cli.py"} or path == ROOT / "diagnoser" / "output" / "__init__.py":
            continue
        calls = [node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        names = {func.id for func in calls if isinstance(func, ast.Name)}
        names |= {func.attr for func in calls if isinstance(func, ast.Attribute)}
        assert not names & {"print", "exit", "_exit", "echo"}, path


def counts_by_hand(path: Path) -> list[int]:
    """Functions in which a text is asked for its digits and made a number."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            asked = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
            made = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            found += [node.lineno] if asked & {"isdigit", "isdecimal", "isnumeric"} and "int" in made else []
    return found


def test_one_function_alone_makes_a_number_of_digits() -> None:
    """`int` refuses over 4,300 of them, and some that `str.isdigit` knows."""
    assert {name_of(path) for path in MODULES if counts_by_hand(path)} == {"traces.patterns"}


@pytest.mark.parametrize(
    ("words", "used"),
    [
        *((words, set()) for words in ("--help", "--version", "analyze --help", "analyze --no-such")),
        ("analyze run.sqlite -f json -o out.json", {"numpy"}),
        ("explain COM-2", {"numpy", "rich"}),  # limits stand where they are used: among arrays
        ("explain", {"numpy", "rich"}),
        ("analyze run.sqlite -o out.txt", {"numpy", "rich"}),
        ("compare run.sqlite run.sqlite -f json -o out.json", {"numpy"}),
    ],
)
def test_a_plain_command_loads_what_it_uses_and_no_more(words: str, used: set[str], tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    program = (
        "import sys; from diagnoser.cli import run; code = run(sys.argv[1:]);"
        f"print(); print(code, *sorted(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    code, *loaded = done.stdout.strip().split("\n")[-1].split()
    assert (code, {*loaded} - used) == ("2" if "--no-such" in words else "0", set()), done.stderr
