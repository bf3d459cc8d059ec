"""The page of a comparison: reviewed pages, printed rows that add up, causes by how sure they are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from reports.content.blocks import Table
from reports.content.comparison import page
from reports.content.page import Detail, View
from reports.write.github import write_github
from reports.write.jira import write_jira
from reports.write.text import write_text
from tests.doubles.compared import Make, compared, many_rows
from tests.doubles.comparison_document import (
    GRAPHS,
    MS,
    by_logs,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.places import GOLDEN, Reviewed
from tests.read_back.markdown import open_lines

ALL = (regression, undecided, not_comparable, unchanged, by_logs)
LINES = 40


def text_of(make: Make, detail: Detail = Detail.FIRST) -> str:
    return write_text(page(compared(make), detail), View())


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("make", [regression, undecided, not_comparable], ids=lambda make: make.__name__)
def test_the_first_screen_reads_as_reviewed(make: Make, reviewed: Reviewed) -> None:
    text = text_of(make)
    assert text == reviewed(GOLDEN / f"comparison_{make.__name__}.txt", text)


def test_the_whole_page_reads_as_reviewed(reviewed: Reviewed) -> None:
    text = write_github(page(compared(regression), Detail.FULL), View())
    assert text == reviewed(GOLDEN / "comparison_regression.md", text)


@pytest.mark.parametrize("make", [*ALL, many_rows])
def test_the_first_screen_and_the_ticket_have_40_lines(make: Make) -> None:
    first = page(compared(make), Detail.FIRST)
    for width in (60, 80, 120, 200):
        lines = write_text(first, View(width)).splitlines()
        assert len(lines) <= LINES or width < 80
        assert max(map(len, lines)) <= width
    assert len(open_lines(write_github(first, View()))) <= LINES
    assert len([line for line in write_jira(first, View()).splitlines() if line]) <= LINES


@pytest.mark.parametrize("make", [regression, undecided, by_logs, many_rows])
def test_printed_rows_add_up_to_the_printed_step(make: Make) -> None:
    (table,) = [one for one in page(compared(make), Detail.FIRST).blocks if isinstance(one, Table)]
    assert table.total is not None
    for place in (1, 2, 3):
        texts = [getattr(row.cells[place], "text", "") for row in (*table.rows, table.total)]
        values = [Fraction(text.replace(",", "")) for text in texts]
        assert sum(values[:-1]) == values[-1] != 0


def test_a_cause_that_works_against_the_difference_is_not_said_to_explain_it() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, explains_ns=-MS),))))
    assert "Moved the step the other way, by -1.00 ms/step, by launch and copy calls." in text
    assert "Explains" not in text


def test_no_cause_explains_more_than_the_whole() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, explains_ns=35 * MS),))))
    assert "Its parts changed by +35.0 ms/step, all others by -31.0, by launch and copy calls." in text
    assert "Explains" not in text
