"""The document as one CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.recording import Recording
from heuristics.result.result import Result
from reports.content.blocks import Detail
from reports.result.codec import Document, decode
from reports.write.csv_tables import COLUMNS, write_csv
from tests.doubles.document import exposed, graph_only
from tests.places import GOLDEN, Reviewed

Export = Callable[..., Path]
IN_FRAME = ("bucket", "exposed_comm_kind", "exposed_copy_kind", "compute_class")


def rows_of(document: Document, detail: Detail = Detail.FIRST) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(write_csv(decode(document, Result), detail))))


def keys(rows: list[dict[str, str]], group: str) -> dict[str, tuple[str, str]]:
    return {row["key"]: (row["ns"], row["frac"]) for row in rows if row["group"] == group}


def test_the_table_reads_as_reviewed(export: Export, reviewed: Reviewed) -> None:
    text = write_csv(decode(diagnoser.analyze(export(exposed())).to_dict(), Result), Detail.FIRST)
    assert text == reviewed(GOLDEN / "exposed.csv", text)
    assert text.splitlines()[0] == ",".join(COLUMNS)


@pytest.mark.parametrize("make", [exposed, graph_only])
def test_where_it_overlaps_with_the_data_frame_the_rows_are_the_same(
    export: Export, make: Callable[[], Recording]
) -> None:
    diagnosis = diagnoser.analyze(export(make()))
    mine = [row for row in rows_of(diagnosis.to_dict()) if row["group"] in IN_FRAME]
    frame = diagnosis.to_frame()
    columns = list(frame.columns)
    whole = frame.astype(object).where(frame.notna(), "")
    theirs: list[tuple[Any, ...]] = list(whole.itertuples(index=False, name=None))
    assert len(mine) == len(theirs) > 0
    for row, wanted in zip(mine, theirs, strict=True):
        for column, value in zip(columns, wanted, strict=True):
            assert row[column] == str(value), column


def test_steps_reasons_and_walls_add_up(export: Export) -> None:
    rows = rows_of(diagnoser.analyze(export(exposed())).to_dict())
    assert [ns for ns, _ in keys(rows, "step").values()] == ["10000000"] * 4
    assert sum(int(ns) for ns, _ in keys(rows, "bucket").values()) == 40_000_000
    assert sum(int(ns) for ns, _ in keys(rows, "absent").values()) == 12_000_000
    assert keys(rows, "absent")["blocking.all_reduce"] == ("12000000", "0.3")
    assert keys(rows, "wall")["communication"] == ("12000000", "0.3")
    assert keys(rows, "wall_kind")["communication.all_reduce"] == ("12000000", "0.3")


def test_what_could_not_be_told_is_an_empty_cell(export: Export) -> None:
    document = diagnoser.analyze(export(graph_only())).to_dict()
    rows = rows_of(document)
    assert keys(rows, "bucket")["exposed_comm"] == ("", "")
    assert keys(rows, "wall")["communication"] == ("", "")
    document["ranks"][0]["absent_ns"] = None
    assert set(keys(rows_of(document), "absent").values()) == {("", "")}
    assert len(keys(rows_of(document), "absent")) == 6


def test_walls_are_of_the_run_and_name_no_rank(export: Export) -> None:
    rows = rows_of(diagnoser.analyze(export(exposed())).to_dict())
    of_run = [row for row in rows if row["group"].startswith("wall")]
    assert {row["trace"] + row["process"] + row["device"] + row["rank"] for row in of_run} == {""}
    assert len([row for row in of_run if row["group"] == "wall"]) == 4


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
