"""The page of a comparison: what is said first, that printed rows add up, what names cannot do."""

from __future__ import annotations

import csv
import io
import re
from fractions import Fraction

import pytest
from msgspec.structs import replace

from heuristics.result.gate import Gate, GateAnswer
from reports.content.blocks import Detail, Fold, Table, View
from reports.content.comparison import page
from reports.write.csv_tables import COMPARED, write_comparison_csv
from reports.write.github import write_github
from reports.write.jira import write_jira
from reports.write.text import write_text
from tests.doubles.compared import Make, compared, many_rows, planted
from tests.doubles.comparison_document import (
    GRAPHS,
    MS,
    by_logs,
    not_comparable,
    regression,
    sized,
    unchanged,
    undecided,
)
from tests.doubles.document import HOSTILE
from tests.places import GOLDEN, Reviewed
from tests.read_back.jira_grammar import read
from tests.read_back.markdown import is_ours_alone, open_lines

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


def test_the_table_reads_as_reviewed(reviewed: Reviewed) -> None:
    text = write_comparison_csv(compared(regression))
    assert text == reviewed(GOLDEN / "comparison_regression.csv", text)


@pytest.mark.parametrize("make", [*ALL, many_rows])
def test_the_first_screen_and_the_ticket_have_40_lines(make: Make) -> None:
    first = page(compared(make), Detail.FIRST)
    for width in (60, 80, 120, 200):
        lines = write_text(first, View(width)).splitlines()
        assert len(lines) <= LINES or width < 80
        assert max(map(len, lines)) <= width
    assert len(open_lines(write_github(first, View()))) <= LINES
    assert len([line for line in write_jira(first, View()).splitlines() if line]) <= LINES


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (regression, "SLOWER +10 %, +4.00 ms per step: 95 % interval +3.50 to +4.50 ms, 20 steps a side."),
        (undecided, "UNDECIDED +10 %, +4.00 ms per step: may be chance; no interval, 2 steps a side."),
        (
            not_comparable,
            "NOT COMPARABLE +10 %, +4.00 ms per step: not judged, as the runs are not comparable.",
        ),
        (unchanged, "NO CHANGE 0 %, 0 ms per step: "),
        (by_logs, "SLOWER +10 %, +3.00 ms per iteration: 95 % interval +2.90 to +3.10 ms, "),
    ],
)
def test_the_verdict_is_said_first_with_its_figures(make: Make, said: str) -> None:
    text = joined(text_of(make))
    assert said in text
    assert text.index(said) < min(text.index("CAUSE") if "CAUSE" in text else 999, text.index("More "))


def test_an_improvement_is_said_as_one() -> None:
    size = sized("trace", 20, 40, 36, None, "")
    text = joined(text_of(lambda: replace(regression(), size=size, verdict="improvement")))
    assert "FASTER -10 %, -4.00 ms per step: no interval, 20 steps a side." in text


def test_what_could_not_be_decided_names_what_to_record() -> None:
    said = joined(text_of(undecided))
    assert "To decide Record 8 or more steps of each run, or give --base-log and --new-log." in said
    assert "launch calls" in said


def test_where_runs_are_not_comparable_the_reason_stands_first_and_no_row_is_shown() -> None:
    text = joined(text_of(not_comparable))
    assert text.index("Why not comparable") < text.index("What changed")
    assert "Where the difference lies" not in text
    (rows,) = [
        one for one in page(compared(not_comparable), Detail.FULL).blocks if getattr(one, "id", "") == "rows"
    ]
    assert isinstance(rows, Fold)


def test_a_gate_that_is_exceeded_says_its_exit_code() -> None:
    said = "Gate of 3 % exceeded (exit code 1): The lower end of the interval, +8.8 %, is above it."
    assert said in joined(text_of(regression))
    assert "Gate of 3 % passed:" in joined(text_of(unchanged))
    assert "Gate" not in text_of(undecided)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("fail", "Gate of 3 % cannot be judged (exit code 1): Few steps."),
        ("pass", "Gate of 3 % cannot be judged, which lets pass here (exit code 0): Few steps."),
    ],
)
def test_a_gate_that_cannot_be_judged_says_what_it_answers(answer: GateAnswer, said: str) -> None:
    gate = Gate(0.03, "undecided", "few steps", answer)
    assert said in joined(text_of(lambda: regression(gate=gate)))


def test_causes_that_explain_the_same_rows_are_said_to() -> None:
    said = "Causes above explain the same parts: one of them may be enough."
    assert said in joined(text_of(regression))
    assert said not in joined(text_of(lambda: regression(suspects=(GRAPHS,))))


@pytest.mark.parametrize("make", [regression, undecided, by_logs, many_rows])
def test_printed_rows_add_up_to_the_printed_step(make: Make) -> None:
    (table,) = [one for one in page(compared(make), Detail.FIRST).blocks if isinstance(one, Table)]
    assert table.total is not None
    for place in (1, 2, 3):
        texts = [getattr(row.cells[place], "text", "") for row in (*table.rows, table.total)]
        values = [Fraction(text.replace(",", "")) for text in texts]
        assert sum(values[:-1]) == values[-1] != 0


def test_rows_beyond_the_first_few_are_one_row_unless_all_are_asked_for() -> None:
    some, every = text_of(many_rows), text_of(many_rows, Detail.FULL)
    assert "14 smaller parts, noise" in some
    assert every.count("class 19") == 1


def test_a_cause_that_works_against_the_difference_is_not_said_to_explain_it() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, explains_ns=-MS),))))
    assert "Moved the step the other way, by -1.00 ms/step, by launch calls." in text
    assert "Explains" not in text


def test_no_cause_explains_more_than_the_whole() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, explains_ns=35 * MS),))))
    assert "Its parts changed by +35.0 ms/step, all others by -31.0, by launch calls." in text
    assert "Explains" not in text


def test_causes_of_what_is_undecided_are_said_to_hang_on_it() -> None:
    told = replace(undecided(), suspects=(GRAPHS,))
    assert "IF REAL CUDA graphs stopped replaying." in joined(text_of(lambda: told))
    assert "IF REAL" not in text_of(regression)
    assert "LIKELY CAUSE CUDA graphs stopped replaying." in joined(text_of(regression))


def test_a_cause_of_low_confidence_is_a_possible_one() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, confidence="low"),))))
    assert "POSSIBLE CAUSE CUDA graphs stopped replaying." in text


def test_a_short_page_has_the_evidence_that_is_no_row_and_a_long_one_all() -> None:
    suspect = replace(GRAPHS, because=("row 1 ms", "graphs: on -> off"), seen=("graphs: on -> off",))
    short, full = (joined(text_of(lambda: regression(suspects=(suspect,)), detail)) for detail in Detail)
    assert ("graphs: on -> off" in short, "row 1 ms" in short) == (True, False)
    assert ("graphs: on -> off" in full, "row 1 ms" in full) == (True, True)


def test_a_question_keeps_its_mark() -> None:
    text = joined(text_of(lambda: regression(suspects=(replace(GRAPHS, next="which rank is late?"),))))
    assert "To be sure: which rank is late? " in text


def test_values_that_are_not_shown_or_not_recorded_are_no_values() -> None:
    text = joined(text_of(regression, Detail.FULL))
    assert "save: differs, its texts are withheld (configuration)" in text
    assert "moe_layer_freq: not recorded -> [0, 1, 1] (configuration)" in text
    assert "work in CUDA graphs: 50 % -> 0 % (trace)" in text


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("make", [regression, not_comparable, by_logs])
def test_no_string_of_a_document_can_harm_a_terminal_or_a_page(make: Make, detail: Detail) -> None:
    hostile = planted(make, HOSTILE)
    found = page(hostile, detail)
    markdown = write_github(found, View())
    assert is_ours_alone(markdown)
    for form in (write_text(found, View()), markdown, write_comparison_csv(hostile)):
        assert not {"\u202e", "\x1b", "\r"} & {*form}
    tame = planted(make, "x")
    assert len(markdown.splitlines()) == len(write_github(page(tame, detail), View()).splitlines())
    assert len(read(write_jira(found, View()))) == len(read(write_jira(page(tame, detail), View())))


def test_what_a_spreadsheet_would_take_for_a_formula_has_an_apostrophe_before_it() -> None:
    text = write_comparison_csv(planted(regression, "=1+1"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["row"] for row in rows if row["section"] in ("kernel", "changed")} == {"'=1+1"}
    assert tuple(rows[0]) == COMPARED


def test_numbers_of_a_ticket_stand_in_its_columns() -> None:
    text = write_github(page(compared(regression), Detail.FIRST), View())
    assert re.search(r"^\| launch calls \| 1\.00 \| 5\.00 \| \+4\.00 \| █{16} \|$", text, re.MULTILINE)
