"""Batches that are there when the step asks for them.

Pessimistic: a quarter of each wait goes, as where a second worker shares the cores of the first: steps of an
MNIST run of others went from 151 to 115 ms, 144 of them waiting.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from traces.replay.changes.change import Draft, Recorded
from traces.replay.graph import Timing

QUARTER: Final = 4


def loading_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`batches_in_time`: a quarter of each wait for a batch goes; the ceiling is no wait at all."""
    data_ns = recorded.graph.pauses.named_ns["data"]
    if not data_ns.any():
        return

    def waiting(timing: Timing, part_ns: int) -> Timing:
        return replace(timing, pause_ns=(timing.pause_ns - data_ns // part_ns).clip(min=0))

    yield Draft(
        "batches_in_time",
        {"host_overhead": ("data",)},
        lambda timing: waiting(timing, QUARTER),
        lambda timing: waiting(timing, 1),
    )
