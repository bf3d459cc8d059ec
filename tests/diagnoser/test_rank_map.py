"""`--ranks map.csv`: which rank a recording is of, where it does not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.simulate.knobs import Knobs
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import RanksRun
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.recorded import Capture, Files, write_ranks
from bench.simulate.recorded import PID
from diagnoser.cli import run as cli
from diagnoser.running.inputs.rank_map import MapRow, contradictions, identified, other_world, read_rank_map
from tests.doubles.result import double
from traces.errors import InputError, UsageError
from traces.missing import Missing
from traces.ranks.summaries.identity import WorldSize
from traces.ranks.summaries.summary import Identity
from traces.sections.run import Run

TRACES = [Path("one/a.sqlite"), Path("two/a.sqlite"), Path("b.sqlite")]


def rows_of(text: str, folder: Path) -> dict[Path, tuple[MapRow, ...]]:
    path = folder / "map.csv"
    path.write_text(text, encoding="utf-8")
    return read_rank_map(path, TRACES)


def test_rows_are_found_by_path_or_by_a_name_that_only_one_has(tmp_path: Path) -> None:
    found = rows_of("file,rank,host,world_size\none/a.sqlite,0,n1,4\nb.sqlite, 3 ,,\n\n", tmp_path)
    assert found == {
        TRACES[0]: (MapRow("map.csv:2", "one/a.sqlite", 0, host="n1", world_size=4),),
        TRACES[2]: (MapRow("map.csv:3", "b.sqlite", 3),),
    }
    assert read_rank_map(None, TRACES) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,rank\nc.sqlite,0\n", "map.csv:2: c.sqlite is none of the recordings that are given."),
        ("file,rank\na.sqlite,0\n", "map.csv:2: 2 recordings are named a.sqlite. Give the path of one."),
        ("file,rank\none/a.sqlite,1\nb.sqlite,1\n",
         "map.csv:3: rank 1 is in map.csv:2 already. Give each rank once."),
        ("file,rank\nb.sqlite,-1\n", "map.csv:2: rank '-1' is no number of a rank."),
        ("file,rank\nb.sqlite,one\n", "map.csv:2: rank 'one' is no number of a rank."),
        ("file,rank,world_size\nb.sqlite,1,0\n", "map.csv:2: world_size '0' is no number of a world size."),
        ("file,rank,world_size\nb.sqlite,4,4\n", "map.csv:2: rank 4 of 4 ranks. Ranks count from 0."),
        ("file,rank,world_size\nb.sqlite,1,4\none/a.sqlite,2,8\n",
         "map.csv:3: world_size 8, and 4 before. Give the size of one run."),
        ("file,rank\nb.sqlite,\n", "map.csv:2: no rank. Give both file and rank."),
        ("file,rank\nb,c.sqlite,1\n", "map.csv:2: more cells than columns. Quote a cell that holds a comma."),
        ("rank\n1\n", "map.csv:1: no column file. It has file,rank and may have process,device,host,"),
        ("file,rank,gpu\nb.sqlite,1,0\n", "map.csv:1: the column 'gpu' is not known."),
        ("", "map.csv:1: no column file."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        rows_of(text, tmp_path)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_map_that_cannot_be_read_is_an_error_of_input(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "map.csv", tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_rank_map(path, TRACES)


def test_a_map_with_zero_bytes_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no text, it has zero bytes"):
        rows_of("file,rank\n\0.sqlite,0\n", tmp_path)


def test_what_is_recorded_counts_more_than_the_map_and_that_is_said() -> None:
    recorded = Identity("b.sqlite", "nsys-sqlite", None, 2, 8, 0, 77, 78)
    row = MapRow("map.csv:2", "b.sqlite", 3, world_size=4)
    assert identified(recorded, row) == recorded
    assert contradictions(recorded, row) == [
        "rank 2 is recorded; map.csv:2 has 3, which is not used",
        "world size 8 is recorded; map.csv:2 has 4, which is not used",
    ]
    assert contradictions(recorded, MapRow("map.csv:2", "b.sqlite", 2)) == []


@pytest.mark.parametrize(("given", "size", "told"), [
    (None, 4, []), (4, 4, []),
    (8, 4, ["the run has 4 ranks by map.csv:2; --world-size has 8, which is not used"]),
    (2, None, ["--world-size has 2 ranks, fewer than were recorded; it is not used"]),
])  # fmt: skip
def test_a_world_size_that_is_not_used_is_a_warning(
    given: int | None, size: int | None, told: list[str]
) -> None:
    run = double(Run, world_size=size or Missing("", "not recorded", ""), world_size_from="map.csv:2")
    assert other_world(WorldSize(given, "--world-size") if given else None, run) == told


def test_a_host_has_a_clock_of_its_own() -> None:
    silent = Identity("all.sqlite", "nsys-sqlite", None, None, None, 0, 77, 78)
    one, two, again = (
        identified(silent, MapRow("map.csv:2", "all.sqlite", 0, host=host)) for host in ("a", "b", "a")
    )
    assert one.clock == again.clock != two.clock
    assert identified(silent, MapRow("map.csv:2", "all.sqlite", 0)).clock == 77


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(
        RanksRun(3, Layout(expert=4, data=4, ranks_per_host=2), Knobs(step_count=4, layer_count=1))
    )


def files_of(done: RanksDone, folder: Path, *, mpi: bool = False, files: Files = Files.RANK) -> list[Path]:
    capture = Capture(mpi=mpi, files=files)
    return [one.path for one in write_ranks(done, folder, draw_clocks(done.run), capture)]


def with_map(paths: list[Path], text: str, folder: Path) -> tuple[int, dict[str, Any]]:
    table, out = folder / "map.csv", folder / "result.json"
    table.write_text(text, encoding="utf-8")
    code = cli(["analyze", *map(str, paths), "--jobs", "1", "--ranks", str(table), "-o", str(out)])
    return code, json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}


def test_ranks_of_one_file_are_told_by_process_or_device(
    done: RanksDone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = files_of(done, tmp_path, files=Files.ALL)
    assert with_map([path], f"file,rank\n{path.name},0", tmp_path)[0] == 2
    assert f"4 ranks of {path.name} fit. Add a column process or device." in capsys.readouterr().err
    assert with_map([path], f"file,rank,device\n{path.name},0,0", tmp_path)[0] == 2
    assert f"2 ranks of {path.name} fit" in capsys.readouterr().err  # one on each host
    twice = f"file,rank,process\n{path.name},0,{PID}\n{path.name},1,{PID}"
    assert with_map([path], twice, tmp_path)[0] == 2
    assert "map.csv:3: map.csv:2 gives this rank a number already." in capsys.readouterr().err
    lines = [f"{path.name},{rank},{PID + 10 * rank}" for rank in (0, 1, 2, 3, 4)]
    code, document = with_map([path], "\n".join(["file,rank,process", *lines]), tmp_path)
    assert code == 0
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1, 2, 3]
    assert document["warnings"] == [f"{path.name}: no rank with kernels is the one of map.csv:6"]
