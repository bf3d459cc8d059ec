"""Real recordings compared: each with itself, and the two GPUs of one with what SQL and numpy add up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.rows import Attribution, attribute, layers
from tests.by_definition.real_recordings import COMM, Work, budget, work_of_export
from tests.doubles.sides import ranks_of
from traces.missing import known
from traces.sections.rank import Rank

TWO_GPUS = "nsysai_mfu_2gpu_before.sqlite"
LATE = ("launch_starved.python", "launch_starved.sync", "launch_starved.launch")


def test_every_recording_against_itself_is_noise_of_nothing(recordings: Path) -> None:
    paths = [path for path in sorted(recordings.iterdir()) if path.name.endswith((".sqlite", ".json.gz"))]
    ranks = [rank for path in paths for rank in ranks_of(path)]
    assert len(ranks) >= len(paths) - 1  # one has no kernels
    for rank in ranks:
        found = attribute(rank, rank)
        (noise,) = found.rows
        assert (found.step_delta_ns, noise.row, noise.delta_ns, noise.parts) == (0, "noise", 0, ())
        assert all(one.delta_ns == 0 for one in found.reasons)
        assert found.modules == ()
        assert compare_kernels(rank, rank) == ()
        assert all(layer.delta_ns == 0 for layer in layers(rank, rank))


def bucket(found: Attribution, name: str) -> int:
    """The rows of a bucket; reasons of idle time are all that is in no other."""
    if name != "idle":
        return sum(row.delta_ns for row in found.rows if row.row.split(".")[0] == name)
    others = ("compute", "exposed_comm", "exposed_copy", "noise")
    return sum(row.delta_ns for row in found.rows if row.row.split(".")[0] not in others)


@pytest.fixture(scope="module")
def gpus(recordings: Path) -> tuple[Rank, Rank, Work, Work]:
    """GPU 0 and GPU 1, and the work of their processes by SQL."""
    path = recordings / TWO_GPUS
    first, second = ranks_of(path)
    processes = (known(rank.process) for rank in (first, second))
    works = [work_of_export(path, process) for process in processes if process is not None]
    return first, second, works[0], works[1]


def test_two_gpus_of_one_recording_differ_as_sql_says(gpus: tuple[Rank, Rank, Work, Work]) -> None:
    """GPU 1's window is 1.19 ms shorter. Computing takes 2.41 ms more there: it ran 21 more elementwise
    kernels and 3 more GEMMs in the second that was recorded, and its attention is 0.3 % slower. Exposed
    communication is 8.94 ms less, and idle time 5.35 ms more: the host of GPU 1 launches later, and so GPU 0
    is the one that waits in the exchanges (the next test).
    """
    first, second, base, new = gpus
    found, by_hand = attribute(first, second), (budget(base, base.whole), budget(new, new.whole))
    assert (by_hand[0]["exposed_comm"], by_hand[1]["exposed_comm"]) == (17_172_652, 8_229_100)
    for name in ("compute", "exposed_comm", "exposed_copy", "idle"):
        assert bucket(found, name) == by_hand[1][name] - by_hand[0][name]
    assert found.step_delta_ns == by_hand[1]["window"] - by_hand[0]["window"] == -1_187_261
    assert found.step_delta_ns == sum(row.delta_ns for row in found.rows)
    told = {row.row: row for row in found.rows}
    assert found.rows[0].row == "exposed_comm.cp"
    assert (told["exposed_comm.cp"].delta_ns, told["exposed_comm.cp"].count_ns) == (-8_943_552, 0)
    assert told["exposed_comm.cp"].base_count == told["exposed_comm.cp"].new_count == 33
    assert told["compute.elementwise"].new_count - told["compute.elementwise"].base_count == 21
    assert told["noise"].delta_ns == 0  # one window a side shows no scatter
    blocking = {row.row: row.delta_ns for row in found.reasons}
    assert blocking["blocking.cp"] == -8_943_552
    assert sum(blocking.values()) == found.step_delta_ns - bucket(found, "compute")


def test_gpu_0_waits_in_exchanges_for_gpu_1_whose_host_is_late(gpus: tuple[Rank, Rank, Work, Work]) -> None:
    """The 33 exchanges end on both GPUs within 27 us of each other, and start on GPU 1 8.42 ms later in sum:
    that is 94 % of what GPU 0 spends longer in them. GPU 1 comes late as its host launches late: 7.24 ms more
    of its idle time is Python, synchronising calls (34 against 4) and launch calls.
    """
    first, second, base, new = gpus
    starts, ends = ([getattr(work, at)[work.what == COMM] for work in (base, new)] for at in ("start", "end"))
    assert len(starts[0]) == len(starts[1]) == 33
    assert np.abs(ends[1] - ends[0]).max() < 27_000
    later_ns = int((starts[1] - starts[0]).sum())
    told = {row.row: row.delta_ns for row in attribute(first, second).rows}
    assert later_ns == 8_420_856
    assert 0.94 < later_ns / -told["exposed_comm.cp"] < 0.95
    assert sum(told[name] for name in LATE) == 7_236_889
