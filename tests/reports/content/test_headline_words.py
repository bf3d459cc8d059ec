"""What the headline says of waits for batches, of windows that cannot be judged, and of hangs."""

from __future__ import annotations

from itertools import accumulate, pairwise
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.result.result import Result
from reports.content.analysis.about import facts
from reports.content.analysis.batches import data_line
from reports.content.analysis.headline import headline
from reports.content.analysis.step import outside
from reports.content.blocks import Sentence
from reports.content.names import plain
from reports.result.codec import decode
from tests.recordings.simulated import scenario
from traces.missing import Missing
from traces.sections.hang import Hang, HangKind, WitnessSource
from traces.sections.steps import Dropped, Outside, Step
from traces.sections.work import DataLoading

UNKNOWN = Missing("", "not recorded", "record it")


def of(name: str) -> Result:
    return decode(scenario(name), Result)


def loading(**fields: Any) -> str:
    """What is said of a run that waits for its batches in three of its steps, of which a wall was made."""
    result = of("memory")
    (rank,) = result.ranks
    known = {"input_copies": 0, "input_copies_pageable": 0, "input_copies_exposed_ns": 0}
    found = DataLoading(**{"waiting_steps": 3, "workers": UNKNOWN, **known, **fields})
    wall = replace(result.walls[0], cost_by_kind_ns={"data": 1_000_000})
    result = replace(result, ranks=(replace(rank, data_loading=found),))
    return data_line(result, [wall])


@pytest.mark.parametrize(("fields", "said"), [
    ({"waiting_steps": 0}, ""), ({}, "3 of "),
    ({"workers": 1}, "ms for its batch: one worker or none, by the rhythm."),
    ({"workers": 4}, "Every fourth step waits longest: four workers, by the rhythm."),
    ({"workers": 23}, "One step in 23 waits longest: 23 workers, by the rhythm."),
])  # fmt: skip
def test_waits_for_batches_are_told_by_their_rhythm(fields: dict[str, Any], said: str) -> None:
    found = loading(**fields)
    assert said in found
    assert bool(found) == bool(said)


def said(result: Result) -> str:
    found = headline(result)
    return " ".join((f"{found.label}:", plain(found.said), *map(plain, found.under)))


def test_a_hang_leads_before_any_wall() -> None:
    hang = Hang(HangKind.TRANSFER, WitnessSource.FLIGHT_RECORDER, "pg", "ALLREDUCE", 9, (), (0, 1))
    assert said(replace(of("memory"), hang=hang)).startswith(
        "HANGS IN: ALLREDUCE seq 9 of pg: all its 2 ranks"
    )


def test_a_window_of_which_little_can_be_judged_says_how_busy_the_gpu_is() -> None:
    result = of("healthy")
    walls = [
        replace(wall, outcome="unmeasurable", missing=("kernels are not recorded",))
        if wall.id != "host_overhead"
        else replace(wall, cost_frac=0.02)
        for wall in result.walls
    ]
    found = said(replace(result, walls=tuple(walls)))
    assert found.startswith("NOT JUDGED: Kernels are not recorded.")
    assert "of the time, so the host costs at most 2.0 %." in found


def test_a_result_without_a_largest_part_says_what_is_closest() -> None:
    result = of("healthy")
    verdict = replace(result.verdict, largest_bucket=UNKNOWN, largest_bucket_frac=UNKNOWN)
    assert "Largest part" not in said(replace(result, verdict=verdict))


def test_a_forward_pass_alone_and_graphs_of_a_tenth_are_said_beside_the_hosts_wall() -> None:
    result = of("token_sync")
    (rank,) = result.ranks
    untrained = {"training_step": False, "training_evidence": "no backward pass"}
    detected = replace(rank.detected, graph_share_frac=0.1, **untrained)
    found = said(replace(result, ranks=(replace(rank, detected=detected),)))
    assert "Not a training step (no backward pass), so no fixes for training." in found
    assert "CUDA graphs hold 10 % of the kernel work." in found


@pytest.mark.parametrize(("longer_ms", "far"), [(124, ""), (125, "far ")])
def test_steps_that_are_left_out_are_told_with_their_reason_and_are_no_time_outside(
    longer_ms: int, far: str
) -> None:
    """Steps of 100 ms, a partial one first and between them, and one that is longer."""
    (rank,) = of("memory").ranks
    ends = [0, *accumulate(ms * 1_000_000 for ms in (50, 100, 50, longer_ms, 100))]
    steps = [Step(at, begin, end) for at, (begin, end) in enumerate(pairwise(ends))]
    reasons = {0: "partial: 1 kernels", 2: "partial: 1 kernels", 3: "hiccup"}
    dropped = tuple(Dropped(at, steps[at].start_ns, steps[at].end_ns, why) for at, why in reasons.items())
    found = replace(
        rank.steps, used=(steps[1], steps[4]), dropped=dropped, slow=(3,), median_ns=100_000_000,
        hiccups_ns=ends[4] - ends[3] - 100_000_000, outside_ns=Outside(1_050_000_000, 50_000_000, 0),
    )  # fmt: skip
    texts = [
        plain(block.said) for block in outside(replace(rank, steps=found)) if isinstance(block, Sentence)
    ]
    more = longer_ms - 100
    assert texts == [
        "Outside the steps: 1.00 s before the first.",
        f"Left out: 1 {far}longer step (hiccups, by {more} %), {more}.0 ms beyond the median.",
        "Left out: 2 steps, partial: 1 kernels; 100 ms in all.",
    ]


def facts_of(*lengths_ms: int) -> str:
    """The line of facts of steps of such lengths."""
    result = of("memory")
    (rank,) = result.ranks
    ends = [0, *accumulate(one * 1_000_000 for one in lengths_ms)]
    used = tuple(Step(at, begin, end) for at, (begin, end) in enumerate(pairwise(ends)))
    lengths_ns = [end - begin for begin, end in pairwise(ends)]
    ends_ns = {"min_ns": min(lengths_ns), "max_ns": max(lengths_ns)}
    steps = replace(rank.steps, used=used, median_ns=int(median(lengths_ns)), **ends_ns)
    budget = replace(rank.budget_ns, window=ends[-1])
    return plain(facts(replace(result, ranks=(replace(rank, steps=steps, budget_ns=budget),))))


def test_mean_and_median_stand_beside_each_other_where_they_differ_by_a_tenth() -> None:
    assert "5 steps of 108 ms, median 20.0 (20.0 to 460)" in facts_of(20, 20, 20, 20, 460)
    assert "3 steps of 21.0 ms (20.0 to 22.0)" in facts_of(20, 21, 22)
