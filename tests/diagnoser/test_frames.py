"""The tables of a diagnosis, held against the result that they are made of."""

from __future__ import annotations

import pandas as pd
import pytest
from msgspec.structs import replace

import diagnoser
from diagnoser.diagnosis import Diagnosis
from tests.doubles.document import exposed
from tests.places import Export
from traces.missing import gap


@pytest.fixture
def diagnosis(export: Export) -> Diagnosis:
    return diagnoser.analyze(export(exposed()))


def test_the_buckets_of_a_rank_add_up_to_its_window(diagnosis: Diagnosis) -> None:
    (rank,) = diagnosis.ranks.to_dict("records")
    buckets = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
    assert (
        sum(rank[one] for one in buckets) == rank["window_ns"] == diagnosis.result.ranks[0].budget_ns.window
    )


def test_steps_that_were_left_out_have_their_reason(diagnosis: Diagnosis) -> None:
    steps, rank = diagnosis.steps, diagnosis.result.ranks[0]
    assert int(steps["used"].sum()) == len(rank.steps.used)
    assert len(steps) == len(rank.steps.used) + len(rank.steps.dropped)
    assert steps[steps["used"]]["left_out_because"].isna().all()
    assert tuple(steps[steps["used"]]["length_ns"]) == rank.lengths_ns


def test_what_is_missing_is_na_and_what_is_nothing_is_zero(diagnosis: Diagnosis) -> None:
    result = diagnosis.result
    unknown = replace(result.walls[0], cost_ns=gap("no kernels", "record some"), cost_frac=0.0)
    table = Diagnosis(replace(result, walls=(unknown,))).walls
    assert table["cost_ns"][0] is pd.NA
    assert table["cost_frac"][0] == 0.0
