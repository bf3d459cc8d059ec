"""The JSON contract of a comparison: valid, every null explained, rows that add up, mirrored when swapped."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from heuristics.comparison.ranks import Pair
from heuristics.result.compared import Compared
from reports.result.codec import Document, encode
from reports.result.read import typed
from reports.result.schema import schema
from tests.agreement.untold import plain, uncovered
from tests.doubles.comparison import rank, result, row
from tests.doubles.comparison_document import (
    MS,
    ROWS,
    attribution,
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


@given(st.lists(st.integers(-(10**10), 10**10), min_size=1))
def test_shares_are_never_more_than_the_whole_and_together_make_it(deltas_ns: list[int]) -> None:
    rows = tuple(replace(ROWS[0], delta_ns=delta_ns) for delta_ns in deltas_ns)
    told = facts(attribution=attribution(sum(deltas_ns), rows))
    shares = [one["share_frac"] for one in document_of(regression(facts=told))["attribution"]]
    if any(deltas_ns):
        assert sum(map(abs, shares)) == pytest.approx(1)
        assert all((share > 0) == (delta > 0) for share, delta in zip(shares, deltas_ns, strict=True))
    else:
        assert set(shares) == {None}


def test_the_schema_refuses_another_verdict_and_a_row_without_its_parts() -> None:
    for harm in ({"verdict": "slower"}, {"attribution": [{"row": "compute.gemm", "delta_ns": 1}]}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**document_of(regression()), **harm})


@pytest.mark.parametrize("make", [*ALL, windows])
def test_a_document_is_read_back_as_it_was_written(make: Callable[[], Compared]) -> None:
    document = document_of(make())
    assert encode(typed(json.loads(json.dumps(document)))) == document


def test_only_noise_has_no_interval_and_with_few_steps_every_row_says_why() -> None:
    assert [row.row for row in regression().attribution if row.ci95_ns is None] == ["noise"]
    assert all(isinstance(row.ci95_ns, Missing) for row in undecided().attribution)


def test_the_keys_of_the_contract_are_there_in_its_order() -> None:
    assert list(document_of(regression())) == [
        *(
            "schema_version",
            "tool",
            "kind",
            "warnings",
            "missing",
            "redacted",
            "verdict",
            "because",
            "record",
        ),
        *("comparable", "base", "new", "size", "step_delta_ns", "step_delta_frac", "step_delta_ci95_ns"),
        *("attribution", "reasons", "modules", "layers", "kernels", "changed", "suspects", "pairs", "gate"),
        *("expected", "exchanged", "scattered"),
    ]


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


def test_the_figures_of_a_side_are_those_of_its_steps() -> None:
    side = document_of(regression())["new"]
    assert side["steps"] == {
        "source": "nvtx",
        "count": 20,
        "mean_ns": 44 * MS,
        "median_ns": 44 * MS,
        "min_ns": 44 * MS,
        "max_ns": 44 * MS,
        "dropped": [],
        "unit": "step",
    }
    assert (side["name"], side["rank"], side["wall"]) == ("after.sqlite", 0, "host_overhead")


def test_the_size_and_its_interval_are_of_the_logs_and_the_rows_are_of_the_traces() -> None:
    document = document_of(by_logs())
    assert (document["size"]["source"], document["size"]["delta_ns"]) == ("log", 3 * MS)
    assert document["step_delta_ns"] == 4 * MS
    assert document["step_delta_ci95_ns"] == [document["size"]["low_ns"], document["size"]["high_ns"]]
    assert document["new"]["log"]["mean_ns"] == 33 * MS


def test_without_an_interval_its_absence_is_said_with_what_to_record() -> None:
    gap = next(one for one in document_of(undecided())["missing"] if one["path"] == "step_delta_ci95_ns")
    assert gap["reason"] == "fewer than 4 steps on a side"
    assert "at least 8 steps" in gap["cure"]


def test_a_window_is_no_step() -> None:
    document = document_of(windows())
    assert document["base"]["steps"]["count"] == 0
    assert document["base"]["steps"]["mean_ns"] is None
    assert document["base"]["step_ns"] == 40 * MS
    assert document["pairs"][0]["step_delta_ns"] is None
    assert document["tool"]["guidance"] is None


def test_the_step_of_every_pair_moves_by_the_difference_of_its_means() -> None:
    pairs = document_of(regression())["pairs"]
    assert [(one["base"]["index"], one["new"]["rank"], one["step_delta_ns"]) for one in pairs] == [
        (0, 0, 4 * MS),
        (1, 1, 4 * MS),
    ]


def test_means_that_fall_between_two_nanoseconds_mirror_when_swapped() -> None:
    ranks = [rank(row("compute.gemm", *lengths)) for lengths in ((10, 11), (14, 14))]
    one, other = (result(single) for single in ranks)
    there, back = (
        document_of(
            regression(
                facts=facts(base=base, new=new),
                pairs=(Pair(base.ranks[0], new.ranks[0], "order"),),
            )
        )
        for base, new in ((one, other), (other, one))
    )
    assert there["pairs"][0]["step_delta_ns"] == -back["pairs"][0]["step_delta_ns"] == 4
    assert (there["base"], there["new"]) == (back["new"], back["base"])


def test_a_withheld_text_and_one_that_nobody_said_are_told_apart() -> None:
    changed = {one["what"]: one for one in document_of(regression())["changed"]}
    assert changed["save"]["withheld"] is True
    assert (changed["moe_layer_freq"]["said_base"], changed["moe_layer_freq"]["new"]) == (False, [0, 1, 1])
    assert changed["version.nccl"]["can_explain"] == ["launch_starved.launch"]


def test_the_table_holds_the_same_figures() -> None:
    document = document_of(regression())
    rows = list(csv.DictReader(io.StringIO(text(document, "csv"))))
    told = [one for one in rows if one["section"] == "attribution"]
    assert [(one["row"], int(one["delta_ns"])) for one in told] == [
        (one["row"], one["delta_ns"]) for one in document["attribution"]
    ]
    step = next(one for one in rows if one["section"] == "step")
    assert sum(int(one["delta_ns"]) for one in told) == int(step["delta_ns"])
    assert {one["section"] for one in rows} == {
        *("size", "step", "attribution", "reason", "module", "layer", "kernel", "changed", "suspect"),
        *("difference", "pair", "gate"),
    }


def test_in_the_table_what_is_not_told_is_an_empty_cell() -> None:
    rows = csv.DictReader(io.StringIO(text(document_of(undecided()), "csv")))
    told: list[dict[str, Any]] = [one for one in rows if one["section"] in ("step", "attribution")]
    assert {one["low_ns"] for one in told} == {one["count_ns"] for one in told} == {""}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x"])
def test_in_the_table_a_name_is_no_formula_and_no_line_break(name: str) -> None:
    document = document_of(regression())
    document["kernels"][0]["name"] = f'{name}"\n,\x1b\u202e'
    rows = list(csv.DictReader(io.StringIO(text(document, "csv"))))
    assert next(one for one in rows if one["section"] == "kernel")["row"] == f"'{name}\" ,  "


def test_the_picture_of_a_side_is_one_step_of_it_and_rows_that_add_up_to_its_mean() -> None:
    document = document_of(regression())
    for side in ("base", "new"):
        assert document[side]["timeline"]["step"] == 1
        assert sum(one["mean_ns"] for one in document[side]["budget_rows"]) == document[side]["step_ns"]
