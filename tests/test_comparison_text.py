"""The comparison in words: what is said first, that every figure is the document's, what names cannot do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec import structs

from heuristics.comparison.comparison import Comparison
from heuristics.comparison.difference.rows import Attribution
from heuristics.result.compared import Comparable
from reports.comparison.figures import per_step, share, signed, signed_percent
from reports.comparison.render import COMPARISON_RENDERERS
from tests.comparison_document_doubles import (
    GRAPHS,
    MS,
    OTHER_NSYS,
    by_logs,
    document_of,
    facts,
    moved,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.document_doubles import HOSTILE
from tests.planted import replaced
from tests.test_markdown import is_ours_alone, open_lines, shown

GOLDEN = Path(__file__).parent / "golden"
ALL = (regression, undecided, not_comparable, unchanged, by_logs)
FORMATS = ("text", "markdown")
KEYWORDS = ("verdict", "state", "source", "change", "kind", "wall", "by", "confidence", "row")


def written(make: Callable[[], Comparison], form: str = "text", everything: bool = False) -> str:
    return COMPARISON_RENDERERS[form](document_of(make()), everything)


def joined(text: str) -> str:
    return " ".join(text.split())


def many_rows() -> Comparison:
    """Twenty rows of 1 ms each beyond noise, 20 suspects, 20 changes and 20 limits."""
    told = facts()
    rows = tuple(moved(f"compute.class_{place}", 1, 2) for place in range(20))
    still = moved("noise", 20, 4, low_ns=None, high_ns=None)
    return regression(
        facts=replace(told, attribution=Attribution(4 * MS, (*rows, still)), changed=told.changed * 4),
        explained=(("compute.class_0",),) * 20,
        suspects=(GRAPHS,) * 20,
        comparable=Comparable("with_differences", (OTHER_NSYS,) * 20),
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [regression, undecided, not_comparable], ids=lambda make: make.__name__)
def test_the_words_read_as_reviewed(
    make: Callable[[], Comparison], form: str, request: pytest.FixtureRequest
) -> None:
    text = written(make, form)
    golden = GOLDEN / f"comparison_{make.__name__}.{'txt' if form == 'text' else 'md'}"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_the_table_reads_as_reviewed(request: pytest.FixtureRequest) -> None:
    text, golden = written(regression, "csv"), GOLDEN / "comparison_regression.csv"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("make", [*ALL, many_rows])
def test_the_text_fits_a_terminal_and_the_page_a_ticket(
    make: Callable[[], Comparison], everything: bool
) -> None:
    assert all(len(line) <= 80 for line in written(make, "text", everything).splitlines())
    page = written(make, "markdown", everything)
    assert page.count("<details>") == page.count("</details>") > 0
    assert is_ours_alone(page)
    assert everything or len(open_lines(page)) <= 60


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (regression, "REGRESSION: a step takes 4.000 ms longer (+10.0 %; 95 % interval +3.500 to +4.500 ms;"),
        (undecided, "UNDECIDED: a step differs by +4.000 ms (+10.0 %; no interval; 2 steps a side)"),
        (not_comparable, "NOT COMPARABLE: the two runs differ in moe_router_load_balancing_type,"),
        (unchanged, "NO CHANGE: a step differs by 0.000 ms (0.0 %;"),
        (by_logs, "REGRESSION: an iteration takes 3.000 ms longer (+10.0 %; 95 % interval +2.900 to +3.100"),
    ],
)
def test_the_verdict_is_said_first_with_its_figures(make: Callable[[], Comparison], said: str) -> None:
    text = joined(written(make))
    assert f"Verdict {said}" in text
    assert said in joined(shown(written(make, "markdown")))
    assert text.index("Verdict ") < text.index("Why ") < text.index("Next ")


def test_an_improvement_is_said_as_one() -> None:
    comparison = regression()
    size = replace(comparison.size, new_mean_ns=36 * MS, delta_ns=-4 * MS, interval=None)
    judged = replace(comparison.judged, verdict="improvement")
    text = joined(written(lambda: replace(comparison, size=size, judged=judged)))
    assert "IMPROVEMENT: a step takes 4.000 ms less (-10.0 %; no interval; 20 steps a side)." in text


def test_what_could_not_be_decided_names_what_to_record() -> None:
    for form in FORMATS:
        said = joined(written(undecided, form))
        assert "To decide: record 8 or more steps of each run, or give --base-log and --new-log." in said
        assert "launch_starved.launch" in said


def test_where_runs_are_not_comparable_the_reason_stands_before_all_else_and_no_row_is_open() -> None:
    text, page = written(not_comparable), written(not_comparable, "markdown")
    assert text.index("Limits ") < text.index("Why ")
    assert "where the difference lies" not in text
    assert "where the difference lies" in written(not_comparable, "text", True)
    assert not [line for line in open_lines(page) if line.startswith("| exposed_comm.ep_dispatch")]
    assert "| exposed_comm.ep_dispatch" in page


def test_a_gate_that_is_tripped_says_its_exit_code() -> None:
    said = "Gate of +3.0 %: TRIPPED (exit code 1). The lower end of the interval, +8.8 %, is above it."
    assert said in joined(written(regression))
    assert "Gate of +3.0 %: passed." in joined(written(unchanged))
    assert "Gate" not in written(undecided)


def test_suspects_that_explain_the_same_rows_are_said_to() -> None:
    said = "1 and 2 explain the same rows: one of them may be enough."
    assert said in joined(written(regression))
    assert said in shown(written(regression, "markdown"))
    alone = joined(written(lambda: regression(suspects=(GRAPHS,))))
    assert "the same rows" not in alone


@pytest.mark.parametrize("make", [regression, undecided, by_logs, many_rows])
def test_printed_rows_add_up_to_the_printed_step(make: Callable[[], Comparison]) -> None:
    figures = re.compile(r"^ +(\S.*?) {2,}(-?[\d.]+) +(-?[\d.]+) +([+-]?[\d.]+) +-?[\d.]+ %$")
    text = written(make).partition("what they are made of")[0]
    rows = [found.groups() for line in text.splitlines() if (found := figures.match(line))]
    assert rows[-1][0] == "step"
    for place in (1, 2, 3):
        parts = [Fraction(one[place]) for one in rows]
        assert sum(parts[:-1]) == parts[-1] != 0


def test_rows_beyond_the_first_few_are_one_row_unless_all_are_asked_for() -> None:
    some, every = written(many_rows), written(many_rows, everything=True)
    assert "10 smaller rows" in some
    assert "+10.000000 27.8 %" in joined(some)
    assert every.count("compute.class_19") > 1
    assert "smaller rows" not in every
    assert "12 smaller rows" in written(many_rows, "markdown")


def test_a_suspect_that_works_against_the_difference_is_not_said_to_explain_it() -> None:
    text = joined(written(lambda: regression(suspects=(structs.replace(GRAPHS, explains_ns=-MS),))))
    assert "Works the other way: -1.000 ms a step, by launch_starved.launch." in text
    assert "Explains" not in text


def test_no_suspect_explains_more_than_the_whole() -> None:
    text = joined(written(lambda: regression(suspects=(structs.replace(GRAPHS, explains_ns=35 * MS),))))
    assert "Its rows moved +35.000 ms a step, all others -31.000, together +4.000, by launch_starved" in text
    assert "Explains" not in text


def test_suspects_of_what_is_undecided_are_said_to_hang_on_it() -> None:
    told = replace(undecided(), suspects=(GRAPHS,))
    for form in FORMATS:
        said = joined(written(lambda: told, form))
        assert said.index("Should the difference be real:") < said.index("CUDA graphs stopped replaying")
        assert "Should the difference" not in written(regression, form)


def test_a_question_keeps_its_mark() -> None:
    asking = structs.replace(GRAPHS, next="which rank is late?")
    text = joined(written(lambda: regression(suspects=(asking,))))
    assert "To be sure of 1: which rank is late? " in text


def test_parts_of_a_difference_are_said_in_words() -> None:
    text = joined(written(regression))
    assert "launch_starved.launch: more of them +4.000000 (100 -> 500 a step)" in text
    assert "exposed_comm.ep_dispatch: each shorter -1.000000, more overlap -1.000000 (10 a step)" in text


def test_values_that_are_not_shown_or_not_said_are_no_values() -> None:
    text = joined(written(regression))
    assert "save: differs, its texts are not shown (configuration)" in text
    assert "moe_layer_freq: not said -> [0, 1, 1] (configuration)" in text
    assert "detected.graph_share_frac: 50.0 % -> 0.0 % (trace)" in text


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("make", [regression, not_comparable, by_logs])
def test_no_string_of_a_document_can_harm_a_terminal_or_a_page(
    make: Callable[[], Comparison], everything: bool
) -> None:
    document = replaced(document_of(make()), HOSTILE, KEYWORDS)
    text = COMPARISON_RENDERERS["text"](document, everything)
    page = COMPARISON_RENDERERS["markdown"](document, everything)
    table = COMPARISON_RENDERERS["csv"](document, everything)
    assert is_ours_alone(page)
    for form in (text, page, table):
        assert not {"\u202e", "\x1b", "\r"} & {*form}
    tame = replaced(document_of(make()), "x", KEYWORDS)
    assert len(page.splitlines()) == len(COMPARISON_RENDERERS["markdown"](tame, everything).splitlines())


def test_a_name_longer_than_a_line_is_cut_and_breaks_no_column() -> None:
    document = replaced(document_of(regression()), "x" * 300, (*KEYWORDS[:-1],))
    assert all(len(line) <= 80 for line in COMPARISON_RENDERERS["text"](document, True).splitlines())


def test_figures_are_written_honestly() -> None:
    assert [signed(ns) for ns in (4_120_000, 0, -500_000)] == ["+4.120", "0.000", "-0.500"]
    assert [signed_percent(frac) for frac in (0.098, 0, -0.0001)] == ["+9.8 %", "0.0 %", "<0.1 %"]
    assert [share(frac) for frac in (None, 0.25, -1.5)] == ["", "25.0 %", "-150.0 %"]
    assert [per_step(count) for count in (3400.0, 2.5, 0.001, 0.0)] == ["3,400", "2.5", "<0.01", "0"]
