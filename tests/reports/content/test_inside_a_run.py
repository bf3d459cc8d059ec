"""Pipeline, experts and bytes of a run as people read them."""

from __future__ import annotations

from typing import Any

from reports.content.analysis.inside import experts, stages, traffic
from reports.content.blocks import Items, Quantity, Sentence, Table, Words, words
from reports.content.names import plain
from tests.doubles.result import double
from traces.missing import Missing
from traces.sections.cause import HotRank
from traces.sections.run import (
    CollectiveSpeed,
    ExpertGroups,
    LayerOfExperts,
    PeerBytes,
    Pipeline,
    PipelineStage,
    RankInRun,
    Run,
    Traffic,
    VirtualStages,
    WorstOfExperts,
)

MS = 1_000_000
UNKNOWN = Missing("", "nothing tells", "record more")


def name(place: int) -> Words:
    return words(f"rank {place}")


def run(**fields: Any) -> Run:
    ranks = tuple(double(RankInRun, index=place, rank=place) for place in range(4))
    return double(Run, ranks=ranks, **fields)


def stage(ranks: tuple[int, ...], **fields: Any) -> PipelineStage:
    known = {"step_ns": 90 * MS, "own_work_ns": 60 * MS, "bubble_ns": 30 * MS}
    phases = {"warm_up_ns": 20 * MS, "steady_ns": 0, "cool_down_ns": 10 * MS}
    return double(PipelineStage, ranks=ranks, **(known | phases | fields))


def pipeline(*of: PipelineStage, **fields: Any) -> Pipeline:
    known = {
        "stages": of or (stage((0, 1)), stage((2, 3))),
        "bubble_frac": 0.35,
        "formula_frac": 1 / 3,
        "stage_imbalance": 1.0,
        "microbatches": 2,
        "chunks": 1,
        "with_more_chunks": (VirtualStages(2, 0.2), VirtualStages(4, 1 / 9)),
    }
    return double(Pipeline, **(known | fields))


def cells(table: Table) -> list[list[str]]:
    return [
        [cell.text if isinstance(cell, Quantity) else plain(cell) for cell in row.cells] for row in table.rows
    ]


def test_each_stage_is_a_row_and_the_bubble_stands_beside_its_formula() -> None:
    table, line = stages(run(pipeline=pipeline()))
    assert isinstance(table, Table)
    assert cells(table)[0] == ["0", "0, 1", "90.0", "60.0", "30.0", "20.0", "0", "10.0"]
    assert isinstance(line, Sentence)
    assert plain(line.said) == (
        "35 % of the steps; the formula gives 33 % for 2 equal stages with 2 microbatches; it leaves 20 % "
        "with 2 and 11 % with 4 virtual stages a rank; the largest own work of a stage is 1.00 times the "
        "mean."
    )


def test_without_a_pipeline_nothing_is_written_and_an_unknown_one_has_its_reason() -> None:
    assert list(stages(run(pipeline=None))) == []
    (line,) = stages(run(pipeline=UNKNOWN))
    assert isinstance(line, Sentence)
    assert plain(line.said) == "unknown: nothing tells."


def uneven(pattern: HotRank | Missing = HotRank.BY_LAYER) -> ExpertGroups:
    return ExpertGroups(
        ((0, 1, 2, 3),),
        2,
        (LayerOfExperts(0, 0, 1.1, 1), LayerOfExperts(0, 1, 1.6, 2)),
        WorstOfExperts(0, 1, 3, 2, 2.0, 300_000),
        pattern,
    )


def test_the_most_uneven_layer_comes_first_and_the_pattern_says_what_it_points_to() -> None:
    table, items = experts(run(experts=uneven()), name)
    assert isinstance(table, Table)
    assert cells(table) == [["1", "1", "1.60 x", "rank 2"], ["0", "1", "1.10 x", "rank 1"]]
    assert isinstance(items, Items)
    assert [plain(one) for one in items.items] == [
        "Another rank has the most by layer, the same in all steps: this points to routing.",
        "Worst: layer 1 in step 3, rank 2: 2.00 times the mean, 300 us more.",
    ]


def test_speed_is_in_gb_a_second_and_who_sends_to_whom_is_left_to_programs() -> None:
    found = Traffic(
        (CollectiveSpeed("ep_a2a", 2, 2 * 10**9, 10 * MS, 2e11),), (PeerBytes("ep_a2a", 0, 3, 5 * 10**6),)
    )
    (speeds,) = traffic(run(traffic=found))
    assert isinstance(speeds, Table)
    assert cells(speeds)[0][1:] == ["2", "2.00 GB", "10.0", "200 GB/s"]
