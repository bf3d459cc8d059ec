"""The house: imports go one way, the wheel holds our packages, every public name is documented."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "traces": {"traces"},
    "heuristics": {"heuristics", "traces"},
    "reports": {"reports", "heuristics", "traces"},
    "diagnoser": {"diagnoser", "reports", "heuristics", "traces"},
}
MODULES = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]
HEAVY = ("numpy", "pandas", "sqlite_utils", "matplotlib", "jinja2", "rich", "yaml", "torch", "megatron")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[0] for name in imported(path)} & set(MAY_IMPORT)
    assert ours <= MAY_IMPORT[package]


def test_the_import_test_can_fail(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("def f():\n    from diagnoser.cli import run\n", encoding="utf-8")
    assert set(imported(planted)) == {"diagnoser.cli"}


def public(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{prefix}{node.name}.")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module says what it is"
    silent = [
        name
        for name, node in public(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not ast.get_docstring(node)
    ]
    assert silent == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 70, (
                f"{path.name}:{node.name} does not fit on a screen"
            )


def test_slow_files_are_files() -> None:
    named = (ROOT / "tests" / "data" / "slow_files.txt").read_text(encoding="utf-8").split()
    assert named == sorted({path.name for path in (ROOT / "tests").glob("test_*.py")} & {*named})


def test_only_the_door_prints_or_exits() -> None:
    for path in MODULES:
        if path.name == "cli.py" or path.name == "output.py":
            continue
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {func.id for func in calls if isinstance(func, ast.Name)}
        names |= {func.attr for func in calls if isinstance(func, ast.Attribute)}
        assert not names & {"print", "exit", "_exit", "echo"}, path


def test_the_wheel_holds_exactly_our_four_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(MAY_IMPORT)
    shipped = {
        *(f"reports/html/{name}" for name in ("page.css", "comparison.css", "page.js", "timeline.js")),
        *(f"reports/html/templates/{name}.html.j2" for name in ("base", "analysis", "comparison", "marks")),
        "reports/measures.toml",
        "traces/names/kernel_rules.toml",
        "traces/settings/knobs.toml",
        "traces/settings/known_names.toml",
        "traces/settings/precision_recipes.toml",
        "traces/settings/wrong_spellings.toml",
        "traces/training_log/known_lines.toml",
        "traces/simulate/export_schemas.json",
    }
    assert shipped | {f"{package}/py.typed" for package in MAY_IMPORT} <= set(names)


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["analyze", "--help"], ["analyze", "--no-such"]]
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    program = (
        "import sys; from diagnoser.cli import run; run(sys.argv[1:]);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.strip().endswith("[]"), run.stdout + run.stderr


def test_a_strangers_package_of_our_name_is_named_clearly(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").write_text("", encoding="utf-8")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import diagnoser"
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1
    assert "needs its own package 'traces'" in run.stderr
    assert str(tmp_path / "traces") in run.stderr
