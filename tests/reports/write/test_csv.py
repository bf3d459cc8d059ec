"""The document as one CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from heuristics.result.result import Result
from reports.content.blocks import Detail
from reports.result.codec import Document, decode
from reports.write.csv_tables import COLUMNS, write_csv
from tests.doubles.document import exposed, graph_only
from tests.places import GOLDEN, Reviewed

Export = Callable[..., Path]


def rows_of(document: Document, detail: Detail = Detail.FIRST) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(write_csv(decode(document, Result), detail))))


def keys(rows: list[dict[str, str]], group: str) -> dict[str, tuple[str, str]]:
    return {row["key"]: (row["ns"], row["frac"]) for row in rows if row["group"] == group}


def test_the_table_reads_as_reviewed(export: Export, reviewed: Reviewed) -> None:
    text = write_csv(decode(diagnoser.analyze(export(exposed())).to_dict(), Result), Detail.FIRST)
    assert text == reviewed(GOLDEN / "exposed.csv", text)
    assert text.splitlines()[0] == ",".join(COLUMNS)


def test_all_adds_unknown_kernels_and_dropped_steps(export: Export) -> None:
    document = diagnoser.analyze(export(exposed(kernel="mystery")), steps="1:4").to_dict()
    some, every = rows_of(document), rows_of(document, Detail.FULL)
    assert keys(every, "unknown_kernel")["mystery"] == ("3000000", "0.1")
    assert keys(every, "dropped_step")["0"] == ("10000000", "")
    assert [row for row in every if row["group"] not in ("unknown_kernel", "dropped_step")] == some


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x"])
def test_a_name_is_no_formula_and_no_line_break(export: Export, name: str) -> None:
    document = diagnoser.analyze(export(graph_only())).to_dict()
    document["ranks"][0]["trace"] = f'{name}"\n,\x1b\u202e'
    first = rows_of(document)[0]
    assert first["trace"] == f"'{name}\" ,  "
    assert (first["group"], first["key"], first["ns"]) == ("bucket", "compute", "90")
