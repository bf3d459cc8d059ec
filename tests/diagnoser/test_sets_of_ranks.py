"""Bad sets of recordings: what is wrong with each is named, and nothing is claimed that does not hold."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.recorded import Capture, Nccl
from bench.simulate.recorded import View
from diagnoser.cli import run as cli
from tests.recordings.sets import RUN, analyzed, cut, late, problems, without_kernels, written

OF_NO_GROUP_ALL: Final = (
    "of every group a rank is missing, and all that are here may have waited for that one"
)
OF_SEVERAL: Final = "the recordings are of several runs, and none of these has most of them"
SLOW_ONE: Final = ("slow_device", 1)


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(RUN)


@pytest.fixture(scope="module")
def files(done: RanksDone, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recordings, by rank."""
    return written(done, tmp_path_factory.mktemp("run"), Capture(mpi=True))


@pytest.fixture(scope="module")
def unnumbered(done: RanksDone, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same, in which nothing tells ranks."""
    return written(done, tmp_path_factory.mktemp("unnumbered"), Capture())


@pytest.fixture(scope="module")
def strangers() -> RanksDone:
    """A run of two ranks."""
    return simulate(replace(RUN, seed=4, cause=Cause.NONE, rank=None, layout=Layout(expert=2, data=2)))


@pytest.fixture(scope="module")
def again() -> RanksDone:
    """Another run of the same four ranks."""
    return simulate(replace(RUN, seed=5, cause=Cause.SLOW_HOST, rank=2, strength=4.0))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def names(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(path.name for path in paths)


def test_any_order_of_files_gives_one_run(files: Sequence[Path], out: Path) -> None:
    document = analyzed(files, out)
    assert late(document) == SLOW_ONE
    assert problems(document) == []
    for turned in (files[::-1], [files[2], files[0], files[3], files[1]]):
        assert analyzed(turned, out)["run"] == document["run"]


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


def test_a_rank_that_nobody_recorded_is_named(files: Sequence[Path], out: Path) -> None:
    document = analyzed(files[:3], out)
    assert problems(document) == [("missing_ranks", (), False, (3,))]
    assert document["run"]["ranks_seen"] == 3
    assert late(document) == OF_NO_GROUP_ALL


def test_without_the_late_rank_no_other_one_is_named(files: Sequence[Path], out: Path) -> None:
    document = analyzed([files[0], files[2], files[3]], out)
    assert problems(document) == [("missing_ranks", (), False, (1,))]
    assert late(document) == OF_NO_GROUP_ALL


def test_of_two_ranks_that_were_recorded_the_two_between_are_missing(
    done: RanksDone, files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    """By the size of their communicator; without communicators by their numbers."""
    bare = written(done, tmp_path / "bare", Capture(mpi=True, nccl=Nccl.NOTHING))
    for paths in (files, bare):
        document = analyzed([paths[0], paths[3]], out)
        assert problems(document) == [("missing_ranks", (), False, (1, 2))]
        assert late(document) == OF_NO_GROUP_ALL
        assert document["run"]["world_size"] is None


def test_ranks_of_a_smaller_run_are_left_out(
    files: Sequence[Path], strangers: RanksDone, out: Path, tmp_path: Path
) -> None:
    others = written(strangers, tmp_path / "others", Capture(mpi=True))
    document = analyzed([*files, *others], out)
    assert problems(document) == [("mixed_runs", names(others), True, ())]
    reason = "left out, other recordings are of the same ranks, with other communicators"
    assert document["warnings"] == [f"{others[0].name}, {others[1].name}: {reason}"]
    assert late(document) == SLOW_ONE
    assert document["run"]["wait_ns"] == analyzed(files, out)["run"]["wait_ns"]


@pytest.mark.parametrize("count", [1, 2])
def test_strangers_without_numbers_share_nothing_and_are_left_out(
    count: int, unnumbered: Sequence[Path], strangers: RanksDone, out: Path, tmp_path: Path
) -> None:
    others = written(strangers, tmp_path / "others", Capture())[:count]
    document = analyzed([*unnumbered, *others], out)
    assert problems(document) == [("apart", names(others), True, ())]
    assert document["run"]["ranks_seen"] == 4
    assert late(document) == ("slow_device", None)
    reason = "left out, they took part in no collective with the others"
    assert document["warnings"] == [f"{', '.join(names(others))}: {reason}"]


def test_a_stranger_of_which_only_times_tell_is_left_out(
    done: RanksDone, again: RanksDone, out: Path, tmp_path: Path
) -> None:
    """Nothing names groups; it is of a process whose other recording overlaps with the others."""
    capture = Capture(nccl=Nccl.NOTHING)
    ours = written(done, tmp_path / "ours", capture)
    other = written(again, tmp_path / "others", capture)[2]
    document = analyzed([*ours, other], out)
    assert problems(document) == [("mixed_runs", (other.name,), True, ())]
    assert late(document) == ("slow_device", None)


def test_two_halves_of_two_runs_name_nobody(
    files: Sequence[Path], again: RanksDone, out: Path, tmp_path: Path
) -> None:
    others = written(again, tmp_path / "others", Capture(mpi=True))[2:]
    document = analyzed([*files[:2], *others], out)
    assert problems(document) == [("apart", names(others), True, ()), ("missing_ranks", (), False, (2, 3))]
    assert late(document) == OF_SEVERAL


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


def test_a_truncated_recording_is_named_and_used(files: Sequence[Path], out: Path, tmp_path: Path) -> None:
    short = cut(files[2], tmp_path, 0, 0.5)
    document = analyzed([files[0], files[1], short, files[3]], out)
    assert problems(document) == [("truncated", (short.name,), False, ())]
    assert document["run"]["ranks_seen"] == 4
    assert late(document) == SLOW_ONE
    assert document["warnings"] == []


def test_a_recording_of_another_schema_is_named_and_used(done: RanksDone, out: Path, tmp_path: Path) -> None:
    older = Capture(View(schema="3.20.3"), mpi=True, ranks=[3])
    paths = [*written(done, tmp_path, Capture(mpi=True, ranks=[0, 1, 2])), *written(done, tmp_path, older)]
    document = analyzed(paths, out)
    assert problems(document) == [("mixed_versions", (paths[3].name,), False, ())]
    assert late(document) == SLOW_ONE


def test_recordings_of_two_times_of_one_run_name_nobody(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    parts = [cut(path, tmp_path, rank / 4, (rank + 1) / 4) for rank, path in enumerate(files)]
    document = analyzed(parts, out)
    assert not document["run"]["clocks"]["aligned"]
    assert late(document) == "the clocks drift apart faster than clocks do"


def test_two_ranks_without_a_step_in_common_name_nobody(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    """Their steps are alike, and the hosts' clocks may be seconds apart, so that one may seem the other."""
    document = analyzed([cut(files[0], tmp_path, 0, 0.45), cut(files[1], tmp_path, 0.55, 1)], out)
    assert late(document) == "one step does not show who is always late"
    assert document["run"]["steps"] == 1


def test_a_rank_recorded_minutes_later_is_left_out(files: Sequence[Path], out: Path, tmp_path: Path) -> None:
    later = Path(shutil.copy(files[3], tmp_path / files[3].name))
    with closing(sqlite3.connect(later)) as database, database:
        database.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + 600000000000")
    document = analyzed([*files[:3], later], out)
    assert problems(document) == [
        ("mixed_runs", (later.name,), True, ()),
        ("missing_ranks", (), False, (3,)),
    ]
    reason = "left out, they were recorded more than 60 s before or after the others"
    assert document["warnings"] == [f"{later.name}: {reason}"]
    assert late(document) == OF_NO_GROUP_ALL


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


def test_a_rank_without_kernels_is_named_and_the_others_go_on(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    empty = without_kernels(files[3], tmp_path)
    document = analyzed([*files[:3], empty], out)
    assert document["warnings"] == [f"{empty.name} was skipped: it has neither kernels nor graph rows"]
    assert problems(document) == [("missing_ranks", (), False, (3,))]
    assert late(document) == OF_NO_GROUP_ALL


def test_only_unreadable_or_empty_files_end_with_their_own_code(
    files: Sequence[Path], tmp_path: Path
) -> None:
    broken = [tmp_path / f"{number}.sqlite" for number in range(2)]
    for path, whole in zip(broken, files, strict=False):
        path.write_bytes(whole.read_bytes()[:1000])
    assert cli(["analyze", *map(str, broken), "--jobs", "1"]) == 3
    empty = [without_kernels(path, tmp_path) for path in files[:2]]
    assert cli(["analyze", *map(str, empty), "--jobs", "1"]) == 4
