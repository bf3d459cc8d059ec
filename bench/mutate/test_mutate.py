"""What may be changed, how a change is said, and that a mutant is judged by tests that see it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.mutate import python_changes, row_changes
from bench.mutate.mutant import Mutant
from bench.mutate.seen import _test_of
from bench.mutate.siblings import siblings_of
from bench.mutate.tree import mutated

SOURCE = '''
@dataclass(frozen=True)
class Row:
    """Twelve words."""

    start_ns: int
    end_ns: int
    stream: int


def length(start_ns: int, end_ns: int) -> int:
    return end_ns - start_ns


def late(rows: list[Row], at_ns: int) -> bool:
    if not rows:
        return False
    return any(row.end_ns > at_ns and length(row.start_ns, row.end_ns) < 5 for row in rows)


def pairs(rows: list[Row], others: list[Row]) -> list[tuple[Row, Row]]:
    return list(zip(rows, others, strict=True))
'''


def made(kind: str) -> set[str]:
    """What each mutant of a kind writes."""
    siblings = siblings_of([ast.parse(SOURCE)])
    return {one.text for one in python_changes.changes("a.py", SOURCE, siblings) if one.kind == kind}


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("edge", {"row.end_ns >= at_ns", "length(row.start_ns, row.end_ns) <= 5"}),
        ("word", {"all"}),
        ("column", {"row.start_ns", "row.end_ns"}),
        ("arguments", {"length(row.end_ns, row.start_ns)"}),
        ("arithmetic", {"(end_ns + start_ns)"}),
        ("guard", {"False and (not rows)"}),
        ("number", {"True", "10"}),
    ],
)
def test_a_small_wrong_line_of_each_kind_is_made_where_it_can_be(kind: str, texts: set[str]) -> None:
    assert made(kind) == texts


def test_a_row_goes_with_its_parts_and_a_condition_is_turned_round() -> None:
    table = '[one]\nneeds = "ep > 1"\n[one.part]\nlimit = 3\n[two]\nleast = 0\nwhen = "a"\n'
    found = [(one.kind, one.applied(table)) for one in row_changes.changes("a.toml", table)]
    assert ("row", '[two]\nleast = 0\nwhen = "a"\n') in found
    assert ("condition", table.replace("ep > 1", "not (ep > 1)")) in found
    assert [one for one in found if one[0] == "number"] == [("number", table.replace("3", "6"))]


def test_mutants_of_one_file_stand_in_it_together_and_go_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1 + 2\n")
    before = (tmp_path / "a.py").stat().st_mtime_ns
    one, other = Mutant("a.py", 1, 4, 5, "7", "number"), Mutant("a.py", 1, 6, 7, "-", "arithmetic")
    with mutated(tmp_path, [one, other]):
        assert (tmp_path / "a.py").read_text() == "x = 7 - 2\n"
    assert (tmp_path / "a.py").read_text() == "x = 1 + 2\n"
    assert (tmp_path / "a.py").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("context", "test"),
    [
        ("|tests/a.py::t[a|b]", "tests/a.py::t[a|b]"),
        ("tests/a.py::t[x] (call)", "tests/a.py::t[x]"),
        ("tests/a.py::t (setup)|tests/b.py::u", "tests/b.py::u"),
        ("", ""),
    ],
)
def test_a_context_names_its_test_whatever_stands_in_its_id(context: str, test: str) -> None:
    assert _test_of(context) == test
