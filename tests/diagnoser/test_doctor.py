"""`doctor`: what a recording holds, lacks, and how to record it better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from diagnoser.cli import run
from heuristics.evidence.fitness import fitness
from heuristics.run.run import WALL_IDS
from tests.recordings.moe_pattern import moe_recording
from traces.columns import Gpu, TraceInfo
from traces.measure.capture import Capture
from traces.sections.tables import WallId

Export = Callable[..., Path]
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["doctor", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("  "))
    return " ".join(out.replace("\\\n", "").split())


def test_a_good_recording_lists_what_it_holds(export: Export, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(export(moe_recording()), capsys)
    assert "100 % of the kernels have their launch recorded" in text
    assert "no kernels" not in text
    assert "no GPU counter samples" in text
    assert "nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node" in text


def test_what_is_missing_says_what_it_makes_impossible(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    text = said(export(recording), capsys)
    assert "no CUDA calls: without launches it is unknown why no compute ran" in text
    assert "no NVTX ranges: steps are found by their pattern" in text


def test_a_recording_without_gpu_work_is_examined_not_refused(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no kernels: nothing can be diagnosed" in said(export(Recording()), capsys)


def test_hidden_graph_work_and_clocks_apart_are_named(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100, launch_ns=300_000_000)
    recording.call("cudaGraphLaunch_v10000", 10, 20)
    text = said(export(recording), capsys)
    assert "clocks may differ by about -300 ms" in text
    assert "1 of 1 CUDA graph launches show no work" in text


def test_notes_of_the_profiler_are_told_in_our_words(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = moe_recording(steps=2, layers=1)
    recording.diagnostic("Not all CUDA events might have been collected on host db01.")
    text = said(export(recording), capsys)
    assert "some CUDA events may be missing" in text
    assert "db01" not in text


ROWS = {
    "kernels": 100,
    "copies and memsets": 1,
    "graph replays": 0,
    "CUDA calls": 100,
    "NVTX ranges": 10,
    "event records": 10,
    "OS calls": 10,
    "memory events": 10,
    "GPU counter samples": 0,
}


def grades(
    rows: Mapping[str, int] | None = None,
    *,
    sm_count: int | None = 132,
    apart_ns: int = 0,
    launched: float = 1.0,
    opaque: int = 0,
) -> dict[WallId, str]:
    """Wall to grade of a recording with these rows in place of the usual ones."""
    capture = Capture({**ROWS, **(rows or {})}, launched, {(1, 0): apart_ns}, 10, opaque)
    gpu = Gpu(0, 0, "NVIDIA H100", sm_count, "9.0", 80 * 10**9)
    info = TraceInfo("run.sqlite", "nsys-sqlite", None, None, "sqlite3", (gpu,), (), ())
    return {one.wall: one.grade for one in fitness(info, capture)}


def test_a_recording_with_everything_is_good_for_every_wall() -> None:
    assert grades() == dict.fromkeys(WALL_IDS, "good")


@pytest.mark.parametrize(
    ("without", "wall", "grade"),
    [
        ("kernels", "compute", "useless"),
        ("kernels", "memory", "useless"),
        ("CUDA calls", "host_overhead", "useless"),
        ("CUDA calls", "communication", "usable"),
        ("NVTX ranges", "communication", "usable"),
        ("NVTX ranges", "compute", "good"),
        ("memory events", "memory", "usable"),
        ("memory events", "communication", "good"),
        ("OS calls", "host_overhead", "usable"),
        ("event records", "communication", "usable"),
    ],
)
def test_what_is_missing_lowers_the_walls_that_need_it(without: str, wall: WallId, grade: str) -> None:
    assert grades({without: 0})[wall] == grade


def test_clocks_that_differ_launches_that_lack_and_an_unknown_gpu_lower_a_wall() -> None:
    assert grades(apart_ns=300_000_000)["host_overhead"] == "useless"
    assert grades(launched=0.5)["host_overhead"] == "usable"
    assert grades(opaque=3) == dict.fromkeys(WALL_IDS, "usable")
    assert grades(sm_count=None)["compute"] == "useless"


def test_only_graph_replays_say_nothing_but_of_the_host() -> None:
    found = grades({"kernels": 0, "graph replays": 7})
    assert found.pop("host_overhead") == "usable"
    assert set(found.values()) == {"useless"}


def test_the_page_ends_in_a_grade_for_each_wall_and_the_line(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(export(moe_recording()), capsys)
    end = text[text.index("Good enough for") :]
    places = [end.index(wall.replace("_", " ")) for wall in WALL_IDS]
    assert places == sorted(places)
    assert end.index("nsys profile") > places[-1]


def test_one_kernel_is_no_recording_to_judge(export: Export, capsys: pytest.CaptureFixture[str]) -> None:
    """The diagnosis has the last word, whatever tables the recording holds."""
    recording = Recording()
    recording.gpu()
    recording.kernel(GEMM, 0, 1_000_000, grid=(132, 1, 1), launch_ns=-9_000, launch_end_ns=-5_000)
    text = said(export(recording), capsys)
    assert "NOT FIT FOR A DIAGNOSIS" in text
    assert "1 kernel and no step: too few to judge a run by" in text
