"""Batches that are there when the step asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traces.replay.changes.change import Draft, Recorded
from traces.replay.graph import Timing


def loading_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`batches_in_time`: twice the workers halve each wait for a batch; the ceiling is no wait at all."""
    data_ns = recorded.graph.pauses.named_ns["data"]
    if not data_ns.any():
        return

    def waiting(timing: Timing, part_ns: int) -> Timing:
        return replace(timing, pause_ns=(timing.pause_ns - data_ns // part_ns).clip(min=0))

    yield Draft(
        "batches_in_time",
        {"host_overhead": ("data",)},
        lambda timing: waiting(timing, 2),
        lambda timing: waiting(timing, 1),
    )
