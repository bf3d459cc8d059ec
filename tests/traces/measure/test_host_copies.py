"""Copies out of the GPU and back in, by slots of 100 us, and which other copies may be batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.measure.host_copies import _are_batches
from traces.measure.memory import measure_memory
from traces.measure.recompute import measure_recompute
from traces.missing import Missing
from traces.sections.rank import Memory
from traces.sections.steps import Unit
from traces.steps.found import Step, from_steps, one_window

NAMES = {
    **{"G": "gemm", "W": "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "N": "norm", "P": "permute"},
    **{"E": "void at::native::embedding_dense_kernel<float>(float*)", "L": "cross_entropy_kernel"},
    **{"A": "all_reduce"},
}


def copied(slots: str, kernel: str = "gemm", unit: Unit = "step") -> Memory:
    """Copies of 1 MiB: `o` out, `b` back; `x` both, the way back begun too early, `t` as the other ends.

    A figure is a copy in of so many MiB, `m` of less than one, a capital a kernel. Steps lie between `|`.
    """
    run, at = Run(), 0
    borders: list[int] = []
    for slot in slots:
        if slot == "|":
            borders.append(at * 1_000)
            continue
        if slot.isdigit() or slot == "m":
            size_bytes = (1 << 20) - 1 if slot == "m" else int(slot) << 20
            run.work("h2d", at, at + 40, size_bytes=size_bytes)
        if slot in NAMES:
            run.work(NAMES[slot], at, at + 40, stream=20 if slot == "A" else 7)
        if slot in "oxt":
            run.work("d2h", at, at + 40, stream=8)
        if slot in "bxt":
            first = at + {"b": 0, "x": 39, "t": 40}[slot]
            run.work("h2d", first, first + 40, stream=9)
        if slot in "obxt.":
            run.work(kernel, at + 80, at + 90)
        at += 100
    used = (Step(place, *pair) for place, pair in enumerate(pairwise(borders)))
    steps, rank = replace(from_steps("user", "", tuple(used)), unit=unit), run.rank()
    if not borders:
        steps = one_window("none", "", 0, at * 1_000)
    return measure_memory(rank, steps, measure_recompute(rank, steps.windows))


# once a step or outside is none; half of it may lie in a step; the last: as it ends, too early, too late
OFFLOAD = """
|obob|obob| 8   |ob..|ob..| 0   ob|ob..| 0   oo|bb..| 2   |..oo|bb 2   |obobb| 4   |obobbb| 0
|oooo|...bbbb...| 8   |tGtE| 4   |xx| 0   |oo|..bb 0
"""


def pairs(text: str) -> list[tuple[str, int]]:
    words = text.split()
    return [(slots, int(copies)) for slots, copies in zip(words[::2], words[1::2], strict=True)]


@pytest.mark.parametrize(("slots", "copies"), pairs(OFFLOAD))
def test_what_goes_out_and_comes_back_twice_a_step_is_offload_with_what_of_it_lies_in_steps(
    slots: str, copies: int
) -> None:
    found = copied(slots)
    assert (found.offload_copies, found.offload_bytes) == (copies, copies << 20)
    assert found.host_resident_copies == 0 or not copies


def test_of_blocks_that_may_be_parts_of_steps_nothing_is_told_of_what_comes_back_within_one() -> None:
    found = copied("|obob|obob|", unit="block").offload_copies
    assert isinstance(found, Missing)
    assert found.reason == "without steps it is unknown what comes back within one"


def test_whole_graphs_hide_their_copies() -> None:
    found = copied("|obob|obob|", "graph")
    for missing in (found.offload_copies, found.host_resident_bytes):
        assert isinstance(missing, Missing)
        assert missing.reason == "graph replays were recorded whole, with the copies in them"


# Weights are read twice with other products behind each; the last step may be cut, and a single copy tells
# nothing. Then: as many products, communication, what no step has. With a pass by name: of a size that
# recurs the batch as well; one row is a model that is loaded; a layer before the loss is no batch.
# A batch is no more than eight, and without steps they fill over a tenth of the window. The last: what comes
# outside of steps is no batch of theirs.
RESIDENT = """
|91G1G1W1W|91G1G1W1W| 8   |91G1G1W1WN| 4   |91G1G1G1G|91GLG1G1G| 8   |91G1G1W1W|91G1G1G1G| 10
|91G1G1G1W1W|91G1G1W1W|91G1GW1.| 12   |91G1G1W1W|91G1GW1G1GW|91G1G1W1W| 15
|91G1GW1G1GW|91G1G1W1W|91G1G1W1W| 15   |91GW|91G1G1W1W1W|91G1G1W1W1G1W| 12
|91G1GW|91G1G1W1W1W|91G1G1W1W1W| 15   |91GN1GN1GP1GP|91GN1GN1GP1GP| 10
|91GA1GA1GG1GGE91GA1GGGGG| 8   |91G1W1WN| 0   |91G1AG11W|91G1G1W1W 4   |4E|292G| 0
|4NG2G2G4G| 4   |42G2P2G24G| 4   |4bE22| 0   |4E2G2G2G4GEG| 3   |4E22G| 0   E22 0   E2G3 2   E2G3GL2G3G 4
|12345678EG12345678EG| 0   |123456789EG123456789EG| 18   E2G3G.. 2   E2G3G... 0   mEmGmG 0
9G8G9G8G9G8G9G8G|91G81G1W1W|71G61G1W1W| 8   |4E4G4G| 3
"""


@pytest.mark.parametrize(("slots", "copies"), pairs(RESIDENT))
def test_weights_live_on_the_host_and_batches_before_passes_do_not(slots: str, copies: int) -> None:
    assert copied(slots).host_resident_copies == copies


@pytest.mark.parametrize(
    ("others", "weights", "steps", "batches"),
    [
        ([], [], 1, False), ([], [5], 1, True), ([1], [5, 5], 1, True), ([1], [5, 5, 6], 1, False),
        ([1, 1], [5, 5, 5], 1, False), ([1, 1], [5, 5, 5, 5], 1, True), ([1, 1, 2], [5, 5, 5], 1, False),
        ([*range(8)], [9, 9], 1, True), ([*range(9)], [9, 9], 1, False), ([*range(9)], [9, 9], 2, True),
    ],
)  # fmt: skip
def test_batches_are_few_and_come_once_where_weights_come_twice(
    others: list[int], weights: list[int], steps: int, batches: bool
) -> None:
    assert _are_batches(np.array(others), np.array(weights), steps) is batches
