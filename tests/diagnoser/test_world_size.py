"""How many ranks a run has, where its recordings do not say: by map, option, configuration or log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.recorded import Capture
from tests.recordings.sets import RUN, analyzed, late, problems, written


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(RUN)


@pytest.fixture(scope="module")
def files(done: RanksDone, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four ranks, by rank; neither number nor world size is recorded, but their communicators are."""
    return written(done, tmp_path_factory.mktemp("run"), Capture())


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def test_an_option_gives_it_and_a_communicator_of_all_ranks_then_numbers_them(
    files: list[Path], out: Path
) -> None:
    silent = analyzed(files[::-1], out)
    assert silent["run"]["world_size"] is None
    assert {rank["rank"] for rank in silent["ranks"]} == {None}
    document = analyzed(files[::-1], out, "--world-size", "4")
    run = document["run"]
    assert (run["world_size"], run["world_size_from"]) == (4, "--world-size")
    assert [(rank["trace"], rank["rank"]) for rank in document["ranks"]] == [
        (path.name, rank) for rank, path in enumerate(files)
    ]
    assert late(document) == ("slow_device", 1)
    assert problems(document) == []


def test_one_that_is_smaller_than_what_was_recorded_is_not_used(files: list[Path], out: Path) -> None:
    document = analyzed(files, out, "--world-size", "2")
    assert document["run"]["world_size"] is None
    assert "--world-size has 2 ranks, fewer than were recorded; it is not used" in document["warnings"]


def test_a_map_counts_more_than_an_option_and_the_difference_is_a_warning(
    files: list[Path], out: Path, tmp_path: Path
) -> None:
    (table := tmp_path / "map.csv").write_text(
        f"file,rank,world_size\n{files[0].name},0,4\n", encoding="utf-8"
    )
    document = analyzed(files, out, "--ranks", str(table), "--world-size", "8")
    assert document["run"]["world_size"] == 4
    assert "the run has 4 ranks by map.csv:2; --world-size has 8, which is not used" in document["warnings"]


def test_communicators_of_so_many_ranks_that_differ_number_nobody(
    done: RanksDone, files: list[Path], out: Path, tmp_path: Path
) -> None:
    """Two ranks of this run and two of another: 4 is the size of neither's group alone."""
    other = written(simulate(replace(RUN, seed=9)), tmp_path / "other", Capture())
    document = analyzed([*files[:2], *other[:2]], out, "--world-size", "4")
    assert {rank["rank"] for rank in document["ranks"]} == {None}
