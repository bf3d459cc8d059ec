"""The same ranks in a file each, in a file for each host, and all in one: one document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.recorded import Capture, Files, Nccl
from tests.recordings.sets import RUN, analyzed, late, written


@pytest.fixture(scope="module")
def done() -> RanksDone:
    """Two hosts, whose clocks differ by seconds."""
    return simulate(RUN)


def run_of(done: RanksDone, folder: Path, capture: Capture) -> dict[str, Any]:
    """The run, in which no name of a file stands, without what is each recording's own: its clock."""
    paths = written(done, folder, capture)
    document = analyzed(paths, folder / "result.json")
    run: dict[str, Any] = document["run"]
    assert run["problems"] == []
    assert run["clocks"].pop("by_rank")
    assert run["clocks"]["aligned"]
    assert {rank["trace"] for rank in document["ranks"]} == {path.name for path in paths}
    return run


@pytest.mark.parametrize(
    ("nccl", "mpi"),
    [(Nccl.PAYLOADS, True), (Nccl.PAYLOADS, False), (Nccl.RANGES, True), (Nccl.NOTHING, True)],
)
def test_one_file_gives_what_a_file_for_each_rank_gives(
    nccl: Nccl, mpi: bool, done: RanksDone, tmp_path: Path
) -> None:
    of_ranks, of_hosts, of_all = (
        run_of(done, tmp_path / files.value, Capture(files=files, nccl=nccl, mpi=mpi)) for files in Files
    )
    assert of_ranks["late"]["cause"] == "slow_device"
    assert of_hosts == of_ranks
    assert of_all == of_ranks


def test_a_slow_link_of_the_second_host_is_found_in_one_file(tmp_path: Path) -> None:
    done = simulate(replace(RUN, cause=Cause.SLOW_LINK, rank=3, strength=3.0))
    (path,) = written(done, tmp_path, Capture(files=Files.ALL, mpi=True))
    assert late(analyzed([path], tmp_path / "result.json")) == ("slow_link", 3)
