"""Bad sets of recordings: what is wrong with each is named, and nothing is claimed that does not hold."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diagnoser.cli import run as cli
from tests.simulate.knobs import Knobs
from tests.simulate.ranks.clocks import draw_clocks
from tests.simulate.ranks.described import Cause, RanksRun
from tests.simulate.ranks.happened import RanksDone, simulate
from tests.simulate.ranks.layout import Layout
from tests.simulate.ranks.recorded import Capture, write_ranks
from tests.simulate.recorded import View

RUN = RanksRun(
    3,
    Layout(expert=4, data=4, ranks_per_host=2),
    Knobs(step_count=4, layer_count=2),
    Cause.SLOW_DEVICE,
    rank=1,
    strength=1.5,
)
"""Rank 1 of four has a slow device, and all wait for it."""


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(RUN)


@pytest.fixture(scope="module")
def files(done: RanksDone, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recordings, by rank."""
    return written(done, tmp_path_factory.mktemp("run"), Capture(mpi=True))


def written(done: RanksDone, folder: Path, capture: Capture) -> list[Path]:
    return [one.path for one in write_ranks(done, folder, draw_clocks(done.run), capture)]


def analyzed(paths: Iterable[Path], out: Path, *, code: int = 0) -> dict[str, Any]:
    """The document that the command writes."""
    out.unlink(missing_ok=True)
    words = ["analyze", *map(str, paths), "--jobs", "1", "--output", str(out)]
    assert cli(words) == code
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return document


def problems(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By kind."""
    return {problem["kind"]: problem for problem in document["run"]["problems"]}


def late(document: dict[str, Any]) -> tuple[str, int | None] | None:
    """Cause and rank; None where nobody is named."""
    found = document["run"]["late"]
    return (found["cause"], found["rank"]) if found else None


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def test_any_order_of_files_gives_one_run(files: Sequence[Path], out: Path) -> None:
    document = analyzed(files, out)
    assert late(document) == ("slow_device", 1)
    assert document["run"]["problems"] == []
    for turned in (files[::-1], [files[2], files[0], files[3], files[1]]):
        assert analyzed(turned, out)["run"] == document["run"]


def test_a_recording_given_twice_under_two_names_counts_once(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    again = Path(shutil.copy(files[2], tmp_path / "again.sqlite"))
    document = analyzed([*files, again], out)
    duplicate = problems(document)["duplicate"]
    assert duplicate["left_out"]
    assert set(duplicate["traces"]) <= {again.name, files[2].name}
    assert any("left out" in warning for warning in document["warnings"])
    assert document["run"]["ranks_seen"] == 4
    whole = analyzed(files, out)
    assert document["run"]["late"] == whole["run"]["late"]
    assert document["run"]["wait_ns"] == whole["run"]["wait_ns"]


def test_a_rank_that_nobody_recorded_is_named(files: Sequence[Path], out: Path) -> None:
    document = analyzed(files[:3], out)
    assert problems(document)["missing_ranks"]["ranks"] == [3]
    assert document["run"]["ranks_seen"] == 3
    assert late(document) in (None, ("slow_device", 1))


def test_without_the_late_rank_no_other_one_is_named(files: Sequence[Path], out: Path) -> None:
    document = analyzed([files[0], files[2], files[3]], out)
    assert problems(document)["missing_ranks"]["ranks"] == [1]
    assert late(document) in (None, ("none", None))


def test_ranks_of_two_runs_are_never_one(
    done: RanksDone, files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    other = simulate(replace(RUN, seed=4, cause=Cause.NONE, rank=None, layout=Layout(expert=2, data=2)))
    strangers = written(other, tmp_path, Capture(mpi=True))
    document = analyzed([*files, *strangers], out)
    mixed = [one for one in document["run"]["problems"] if one["left_out"]]
    left_out = {name for one in mixed for name in one["traces"]}
    assert left_out == {path.name for path in strangers}
    assert document["run"]["late"] == analyzed(files, out)["run"]["late"]
    assert all(any(path.name in one for one in document["warnings"]) for path in strangers)


def test_two_halves_of_two_runs_name_nobody(files: Sequence[Path], out: Path, tmp_path: Path) -> None:
    other = simulate(replace(RUN, seed=5, cause=Cause.SLOW_HOST, rank=2, strength=4.0))
    strangers = written(other, tmp_path, Capture(mpi=True))
    document = analyzed([*files[:2], *strangers[2:]], out)
    assert any(one["left_out"] for one in document["run"]["problems"])
    assert late(document) in (None, ("none", None))


def test_a_truncated_recording_is_named(files: Sequence[Path], out: Path, tmp_path: Path) -> None:
    short = Path(shutil.copy(files[2], tmp_path / files[2].name))
    with closing(sqlite3.connect(short)) as database, database:
        ((middle,),) = database.execute("SELECT (min(start) + max(end)) / 2 FROM CUPTI_ACTIVITY_KIND_KERNEL")
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            database.execute(f"DELETE FROM {table} WHERE start > ?", (middle,))
    document = analyzed([files[0], files[1], short, files[3]], out)
    assert problems(document)["truncated"]["traces"] == [short.name]
    assert late(document) in (None, ("slow_device", 1))


def test_a_recording_of_another_schema_is_named_and_used(done: RanksDone, out: Path, tmp_path: Path) -> None:
    older = Capture(View(schema="3.20.3"), mpi=True, ranks=[3])
    paths = [*written(done, tmp_path, Capture(mpi=True, ranks=[0, 1, 2])), *written(done, tmp_path, older)]
    document = analyzed(paths, out)
    odd = problems(document)["mixed_versions"]
    assert odd["traces"] == [paths[3].name]
    assert not odd["left_out"]
    assert late(document) == ("slow_device", 1)


def test_recordings_that_do_not_overlap_name_nobody(files: Sequence[Path], out: Path, tmp_path: Path) -> None:
    apart = []
    for rank, path in enumerate(files):
        copy = Path(shutil.copy(path, tmp_path / path.name))
        with closing(sqlite3.connect(copy)) as database, database:
            ((first, last),) = database.execute("SELECT min(start), max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL")
            begin, end = (first + (last - first) * part // 4 for part in (rank, rank + 1))
            for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
                database.execute(f"DELETE FROM {table} WHERE start < ? OR start > ?", (begin, end))
        apart.append(copy)
    document = analyzed(apart, out)
    assert late(document) in (None, ("none", None))


def test_one_unreadable_file_is_named_and_the_others_go_on(
    files: Sequence[Path], out: Path, tmp_path: Path
) -> None:
    broken = tmp_path / files[3].name
    broken.write_bytes(files[3].read_bytes()[:1000])
    document = analyzed([*files[:3], broken], out)
    assert any(warning.startswith(f"{broken.name} was skipped") for warning in document["warnings"])
    assert problems(document)["missing_ranks"]["ranks"] == [3]
    assert late(document) in (None, ("slow_device", 1))


def test_only_unreadable_files_end_with_their_own_code(files: Sequence[Path], tmp_path: Path) -> None:
    broken = []
    for number in range(2):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(files[number].read_bytes()[:1000])
        broken.append(str(path))
    assert cli(["analyze", *broken, "--jobs", "1"]) == 3
