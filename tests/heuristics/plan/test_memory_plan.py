"""Memory that ran out: what its own numbers say of the first fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.memory_use import segments_suffice
from heuristics.plan.plan import make_plan
from heuristics.run.run import Run
from tests.doubles.fixes import complete
from traces.training_log.log import OutOfMemory, TrainingLog

GIB = 1024**3


def out_of_memory(allocated: int, reserved: int, asked: int, free: int = 1) -> Run:
    """A run that asked for more than there was; sizes in GiB, of a GPU of 80."""
    one = OutOfMemory(
        7,
        "forward",
        capacity_bytes=80 * GIB,
        reserved_bytes=reserved * GIB,
        allocated_bytes=allocated * GIB,
        requested_bytes=asked * GIB,
        free_bytes=free * GIB,
    )
    log = TrainingLog("train.log", 100, out_of_memory=(one,))
    return replace(complete({"seq_length": 4096}), log=log, does_not_fit=True)


@pytest.mark.parametrize(
    ("run", "suffice", "first"),
    [
        (out_of_memory(allocated=60, reserved=77, asked=10), True, "MEM-1"),
        (out_of_memory(allocated=60, reserved=77, asked=18), True, "MEM-1"),
        (out_of_memory(allocated=60, reserved=77, asked=19), False, "MEM-2"),
        (out_of_memory(allocated=76, reserved=77, asked=6), False, "MEM-2"),
        (replace(complete(), does_not_fit=True), None, "MEM-1"),
    ],
)
def test_segments_come_first_only_where_they_can_hold_what_was_asked_for(
    run: Run, suffice: bool | None, first: str
) -> None:
    """Issue item 6: reserved and not allocated, and free, against what was asked for."""
    assert segments_suffice(run) is suffice
    assert make_plan(run, ["memory"], CATALOGUE).fixes[0].fix.id == first


def test_recompute_is_wider_where_no_allocator_can_hold_it() -> None:
    """Issue item 6."""
    held, short = out_of_memory(60, 77, 10), out_of_memory(76, 77, 6)
    modules = [CATALOGUE["MEM-2"].change(run).set["recompute_modules"] for run in (held, short)]
    assert modules == [("moe_act",), ("moe_act", "layernorm")]
