"""The JSON contract of a comparison: valid, every null explained, rows that add up, mirrored when swapped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from heuristics.comparison.ranks import Pair
from heuristics.result.compared import Compared
from reports.result.codec import Document
from tests.agreement.schema import schema
from tests.agreement.untold import plain, uncovered
from tests.doubles.comparison import rank, result, row
from tests.doubles.comparison_document import (
    MS,
    by_logs,
    document_of,
    facts,
    not_comparable,
    regression,
    traced,
    unchanged,
    undecided,
)
from tests.read_back.rendering import text
from traces.missing import Missing

UNKNOWN = Missing("", "nobody recorded it", "record it")
ROWS_OF = ("attribution", "reasons", "modules")
NEED_NOT_APPLY = {
    *("size.p_frac", "size.between_runs"),  # without a permutation test, without further runs of base
    *("tool.guidance", "gate", "kernels[].base_grid", "kernels[].new_grid"),
    *("kernels[].base_block", "kernels[].new_block"),
    *("kernels[].base_each_ns", "kernels[].new_each_ns", "changed[].base", "changed[].new"),
    *(f"{rows}[].{key}" for rows in ROWS_OF for key in ("wall", "share_frac", "ci95_ns")),
    *(f"{side}.{key}" for side in ("base", "new") for key in ("wall", "bound", "kind", "confidence")),
}
"""Two guides are none; rows that no wall shrinks have none; a kernel of one side has no grid on the other."""
ALL = (regression, undecided, not_comparable, unchanged, by_logs)


def validate(document: Document) -> None:
    jsonschema.Draft202012Validator(schema(Compared)).validate(document)


def windows() -> Compared:
    """Two recordings without steps, on a GPU, in a process and of a rank that nobody recorded."""
    unknown: dict[str, Any] = {"source": "none", "gpu": UNKNOWN, "process": UNKNOWN, "rank": UNKNOWN}
    base, new = (result(rank(row("compute.gemm", ms * MS), **unknown), guidance=str(ms)) for ms in (40, 44))
    told = facts(base=base, new=new)
    pairs = (Pair(base.ranks[0], new.ranks[0], "order"),)
    return regression(facts=told, pairs=pairs, size=traced(1, interval=False))


@pytest.mark.parametrize("make", [*ALL, windows])
def test_every_document_is_valid_and_every_null_is_explained(make: Callable[[], Compared]) -> None:
    document = document_of(make())
    validate(document)
    assert {plain(path) for path in uncovered(document)} <= NEED_NOT_APPLY
    assert json.loads(text(document, "json")) == document


@pytest.mark.parametrize("make", ALL)
def test_rows_add_up_to_the_step_on_each_side_and_one_is_noise(make: Callable[[], Compared]) -> None:
    document = document_of(make())
    rows = document["attribution"]
    assert sum(one["delta_ns"] for one in rows) == document["step_delta_ns"]
    assert sum(one["base_ns"] for one in rows) == document["base"]["step_ns"]
    assert sum(one["new_ns"] for one in rows) == document["new"]["step_ns"]
    assert [one["row"] for one in rows].count("noise") == 1
    for one in rows:
        told = [one[key] for key in ("count_ns", "duration_ns", "overlap_ns")]
        assert None in told or sum(told) == one["delta_ns"]


def test_means_that_fall_between_two_nanoseconds_mirror_when_swapped() -> None:
    ranks = [rank(row("compute.gemm", *lengths)) for lengths in ((10, 11), (14, 14))]
    one, other = (result(single) for single in ranks)
    there, back = (
        document_of(
            regression(facts=facts(base=base, new=new), pairs=(Pair(base.ranks[0], new.ranks[0], "order"),))
        )
        for base, new in ((one, other), (other, one))
    )
    assert there["pairs"][0]["step_delta_ns"] == -back["pairs"][0]["step_delta_ns"] == 4
    assert (there["base"], there["new"]) == (back["new"], back["base"])
