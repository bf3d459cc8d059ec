"""Bad sets of recordings: what is wrong with each is named, and nothing is claimed that does not hold."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.recorded import Capture
from diagnoser.cli import run as cli
from tests.recordings.sets import RUN, analyzed, late, problems, without_kernels, written

OF_NO_GROUP_ALL: Final = (
    "of every group a rank is missing, and all that are here may have waited for that one"
)


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(RUN)


@pytest.fixture(scope="module")
def files(done: RanksDone, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recordings, by rank."""
    return written(done, tmp_path_factory.mktemp("run"), Capture(mpi=True))


@pytest.fixture(scope="module")
def again() -> RanksDone:
    """Another run of the same four ranks."""
    return simulate(replace(RUN, seed=5, cause=Cause.SLOW_HOST, rank=2, strength=4.0))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def names(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(path.name for path in paths)


def test_a_folder_of_ranks_gives_what_its_files_give(files: Sequence[Path], out: Path) -> None:
    folder = files[0].parent
    document = analyzed([folder], out)
    assert document["run"] == analyzed(files, out)["run"]
    assert document["command"] == f"moe-diag analyze {folder.name}"
    assert analyzed([folder / "*.sqlite"], out)["run"] == document["run"]


def test_a_recording_given_twice_under_two_names_counts_once(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(files[2], tmp_path / "z.sqlite"))
    document, whole = analyzed([*files, copy], out), analyzed(files, out)
    assert problems(document) == [("duplicate", (copy.name,), True, ())]
    assert document["warnings"] == [f"{copy.name}: left out, the same recording is there already"]
    del document["run"]["problems"], whole["run"]["problems"]
    assert document["run"] == whole["run"]


@pytest.mark.parametrize("mpi", [True, False])
def test_two_whole_runs_are_refused_by_name_in_one_line(
    mpi: bool, done: RanksDone, again: RanksDone, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sets = [written(one, tmp_path / f"{one.run.seed}", Capture(mpi=mpi)) for one in (done, again)]
    assert cli(["analyze", *map(str, [*sets[0], *sets[1]])]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "these are of different runs: " in line
    assert all(names(one)[0] in line for one in sets)
    assert line.endswith("Type moe-diag analyze with the files of one run, or moe-diag compare with both")


def test_one_unreadable_file_is_named_and_the_others_go_on(
    files: Sequence[Path], out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / files[3].name
    broken.write_bytes(files[3].read_bytes()[:1000])
    document = analyzed([*files[:3], broken], out)
    assert document["warnings"] == [f"{broken.name} was skipped: it is damaged"]
    assert problems(document) == [("missing_ranks", (), False, (3,))]
    assert late(document) == OF_NO_GROUP_ALL
    assert f"skipped: {broken} is truncated" in capsys.readouterr().err


def test_only_unreadable_or_empty_files_end_with_their_own_code(
    files: Sequence[Path], tmp_path: Path
) -> None:
    broken = [tmp_path / f"{number}.sqlite" for number in range(2)]
    for path, whole in zip(broken, files, strict=False):
        path.write_bytes(whole.read_bytes()[:1000])
    assert cli(["analyze", *map(str, broken), "--jobs", "1"]) == 3
    empty = [without_kernels(path, tmp_path) for path in files[:2]]
    assert cli(["analyze", *map(str, empty), "--jobs", "1"]) == 4
