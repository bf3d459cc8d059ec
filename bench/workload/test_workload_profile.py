"""Megatron-Core's GPT over two ranks under the real nsys: recorded, exported, scrubbed, and diagnosed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench.simulate.export import write_export
from bench.workload.__main__ import main
from bench.workload.nsys_recorded import Report
from bench.workload.profile import RankRecording, made_how, rank_environment
from bench.workload.record import Request
from bench.workload.states import SIZES
from diagnoser.cli import run
from tests.hostile.secrets import SECRET
from tests.places import ROOT
from tests.recordings.moe_pattern import moe_recording
from traces.errors import InputError
from traces.formats.nsys_tool import Nsys
from traces.formats.open import read_trace
from traces.progress import Progress

STEPS, RANKS = 2, 2
WARM_UP = 3
PHASES = ("route", "preprocess", "dispatch", "experts", "combine")


def workload(*options: object) -> int:
    return main([*map(str, options)])


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["--state", "lazy", "--profile", "x"], 2, "there are eager,"),
        (["--state", "eager", "--profile", "x", "--device", "tpu"], 2, "--device"),
        (["--state", "eager", "--profile", "x", "--steps", "0"], 2, "--steps"),
        (
            ["--state", "eager", "--profile", "x", "--ranks", "3"],
            2,
            "8 experts of state eager cannot be spread",
        ),
        (["--state", "eager", "--profile", "x", "--ranks", "0"], 2, "--ranks"),
        (["--state", "eager", "--profile", "taken"], 2, "is no empty folder"),
        (["--state", "eager", "--profile", "absent/x"], 3, "is no folder"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    assert workload(*asked) == code
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_without_its_packages_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.workload.profile.find_spec", lambda name: None)
    assert workload("--state", "eager", "--profile", tmp_path / "run", "--device", "cpu") == 3
    said = capsys.readouterr().err
    assert "PyTorch and megatron-core and nvtx cannot be imported here" in said
    assert "pip install 'moe-diag[megatron]'" in said
    assert list(tmp_path.iterdir()) == []


def test_a_report_gets_no_environment_but_what_a_rank_needs(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "WARN", "WANDB_API_KEY": SECRET}
    passed = rank_environment(given, tmp_path)
    assert SECRET not in passed.values()
    assert {name: passed[name] for name in given if name in passed} == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "NCCL_DEBUG": "WARN",
    }


NSYS = """#!/bin/sh
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2022.4.2.1-df9881f"; exit 0; fi
{does}
"""


def fake_nsys(folder: Path, does: str) -> Path:
    path = folder / "nsys"
    path.write_text(NSYS.format(does=does), encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("echo 'no such option' >&2; exit 1", "nsys 2022.4.2 could not start rank 0: no such option"),
        ("exit 0", "nsys 2022.4.2 recorded nothing"),
        (": >rank0.qdstrm; : >rank1.qdstrm", "left only a raw stream (.qdstrm)"),
        ("touch begun0 begun1; exit 9", "rank 0 of the workload failed: it ended with exit code 9"),
        (
            "touch begun0; echo 'File x' >failed0.txt; echo 'no memory' >>failed0.txt; exec sleep 60",
            "rank 0 of the workload failed: no memory",
        ),
        (
            "[ -e ../again0 ] && [ -e ../again1 ] && exit 0; touch ../again0 ../again1; exit 1",
            "recorded nothing",
        ),
    ],
)
def test_an_nsys_that_fails_leaves_nothing_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], does: str, said: str
) -> None:
    monkeypatch.setattr("bench.workload.profile.find_spec", lambda name: True)
    nsys = fake_nsys(tmp_path, does)
    profile = tmp_path / "run"
    assert workload("--state", "eager", "--profile", profile, "--device", "cpu", "--nsys", nsys) == 3
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["nsys"]


def test_a_rank_whose_request_is_gone_ends_by_itself(tmp_path: Path) -> None:
    """Whatever ends the program that asked: a rank waiting for another one does not stay behind."""
    request = tmp_path / "request0.json"
    asked = {"state": "eager", "device": "cpu", "step_count": 1, "megatron": True}
    request.write_text(json.dumps({"request": asked, "rank": 0, "rank_count": 2}), encoding="utf-8")
    runs = "lambda *_: (print('runs', flush=True), time.sleep(60))"
    program = f"import time, bench.workload.rank as rank; rank._run = {runs}; rank.main()"
    words = [sys.executable, "-c", program, str(request)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "runs\n"
            request.unlink()
            assert started.wait(30) == -signal.SIGTERM
        finally:
            started.kill()


Recorded = tuple[Path, int, str]
SHOWN = "would have shown Megatron-Core's GPT over two ranks recorded under the real nsys, and diagnosed"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The folder of one state over two ranks on the CPU, the exit code, and what was printed to stderr."""
    absent = [package for package in ("megatron", "torch", "nvtx") if find_spec(package) is None]
    if absent and os.environ.get("MOE_DIAG_MEGATRON") == "required":
        pytest.fail(f"{absent} cannot be imported, and MOE_DIAG_MEGATRON=required says that they must be")
    nsys = shutil.which("nsys")
    if absent or nsys is None:
        pytest.skip(f"no {' and no '.join(absent or ['nsys'])} here: {SHOWN}")
    folder = tmp_path_factory.mktemp("profile") / "run"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.workload", "--state", "host_counts", "--device", "cpu"),
            *("--profile", str(folder), "--ranks", str(RANKS), "--steps", str(STEPS), "--nsys", nsys),
        ],
        cwd=ROOT,
        env={**os.environ, "WANDB_API_KEY": SECRET},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 4), done.stderr
    return folder, done.returncode, done.stderr


@pytest.mark.megatron
def test_each_rank_of_the_real_workload_is_recorded_with_its_phases(recorded: Recorded) -> None:
    folder, _, _ = recorded
    layers_and_steps = SIZES["cpu"].layer_count * (WARM_UP + STEPS)
    for rank in range(RANKS):
        columns = read_trace(folder / f"rank{rank}.sqlite")
        texts = [columns.range_texts[text] for text in columns.ranges.text.tolist()]
        assert [text for text in texts if text.startswith("step ")] == [
            f"step {step}" for step in range(STEPS)
        ]
        assert {phase: texts.count(phase) for phase in PHASES} == dict.fromkeys(PHASES, layers_and_steps)
        assert {texts.count(part) for part in ("forward", "backward", "optimizer")} == {WARM_UP + STEPS}
        assert (len(columns.kernels.name), len(columns.calls.name)) == (0, 0)


@pytest.mark.megatron
def test_without_a_gpu_the_analysis_abstains_and_names_what_to_record(recorded: Recorded) -> None:
    folder, code, said = recorded
    assert code == 4
    analysis = (folder / "analysis.txt").read_text(encoding="utf-8")
    assert "no CUDA data" in analysis
    assert "Record the GPU: nsys profile --trace=cuda,nvtx" in analysis
    assert analysis.strip() in said
    for rank in range(RANKS):
        doctor = (folder / f"rank{rank}.doctor.txt").read_text(encoding="utf-8")
        assert "NOT FIT FOR A DIAGNOSIS" in doctor
        assert "no kernels: nothing can be diagnosed." in doctor
        assert "--trace=cuda,nvtx,osrt" in doctor
    assert not (folder / "result.json").exists()


@pytest.mark.megatron
def test_analyze_and_doctor_end_alike_on_the_folder(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, code, _ = recorded
    assert run(["analyze", str(folder), "--ranks", str(folder / "ranks.csv")]) == code
    assert "no CUDA data" in capsys.readouterr().err
    assert run(["doctor", str(folder / "rank0.sqlite")]) == 0
    assert capsys.readouterr().out == (folder / "rank0.doctor.txt").read_text(encoding="utf-8")


@pytest.mark.megatron
def test_beside_each_recording_stands_how_it_was_made(recorded: Recorded) -> None:
    folder, _, _ = recorded
    for rank in range(RANKS):
        known: dict[str, Any] = json.loads((folder / f"rank{rank}.known.json").read_text(encoding="utf-8"))
        assert (known["rank"], known["rank_count"], known["backend"]) == (rank, RANKS, "gloo")
        assert (known["state"], known["gpu"], known["gpu_event_count"]) == ("host_counts", None, 0)
        assert known["recorded_step_count"] == STEPS
        assert len(known["stand_ins"]) == 3
        assert known["recorded_by"]["options"][0] == "--trace=nvtx,osrt"


@pytest.mark.megatron
def test_what_is_kept_names_no_person_machine_folder_or_environment(recorded: Recorded) -> None:
    folder, _, _ = recorded
    private = {os.uname().nodename, str(Path.home()), str(ROOT), str(folder), "/tmp/", sys.executable, SECRET}
    kept = [path for path in folder.iterdir() if path.is_file()]
    assert len(kept) == 3 * RANKS + 2
    for path in kept:
        content = path.read_bytes()
        assert [word for word in private if len(word) > 2 and word.encode() in content] == []
    for report in (folder / "raw").glob("*.nsys-rep"):
        assert SECRET.encode() not in report.read_bytes()


@pytest.mark.megatron
def test_only_threads_of_the_rank_itself_are_kept(recorded: Recorded) -> None:
    folder, _, _ = recorded
    with closing(sqlite3.connect(folder / "rank0.sqlite")) as database:
        processes = database.execute(
            "SELECT DISTINCT (globalTid >> 24) & 0xFFFFFF FROM ThreadNames"
        ).fetchall()
        own = database.execute("SELECT DISTINCT (globalTid >> 24) & 0xFFFFFF FROM NVTX_EVENTS").fetchall()
    assert set(processes) >= set(own)
    assert len(processes) <= 2


def test_a_recording_with_kernels_is_diagnosed_into_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on GPUs, with simulated ranks in place of recorded ones."""

    def simulated(
        request: Request, rank_count: int, nsys: Nsys, folder: Path, _: Progress
    ) -> list[RankRecording]:
        (folder / "work").mkdir()
        made = {
            "state": request.state,
            "recorded_step_count": request.step_count,
            "gpu_event_count": 9,
            "range_count": 5,
            "not_done": [],
            "device": "cuda",
        }
        found = []
        for rank in range(rank_count):
            export, report = folder / f"rank{rank}.sqlite", folder / "work" / f"rank{rank}.nsys-rep"
            write_export(export, moe_recording(steps=4 + rank, layers=1))
            report.touch()
            found.append(RankRecording(export, report, made))
        return found

    monkeypatch.setattr("bench.workload.profile.find_spec", lambda name: True)
    monkeypatch.setattr("bench.workload.profile.profile", simulated)
    folder, nsys = tmp_path / "run", fake_nsys(tmp_path, "exit 0")
    folder.mkdir()  # an empty one may be there
    assert workload("--state", "eager", "--profile", folder, "--ranks", "2", "--nsys", nsys) == 0
    printed = capsys.readouterr().out
    assert "6 steps of state eager on 2 ranks, 18 GPU events" in printed
    analysis = (folder / "analysis.txt").read_text(encoding="utf-8")
    assert analysis.strip() in printed
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [rank["rank"] for rank in result["ranks"]] == [0, 1]
    assert str(tmp_path) not in json.dumps(result)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["analysis.txt", "ranks.csv", "raw", "result.json"]
        + [f"rank{rank}.{end}" for rank in (0, 1) for end in ("sqlite", "known.json", "doctor.txt")]
    )
    assert json.loads((folder / "rank1.known.json").read_text(encoding="utf-8"))["state"] == "eager"


def test_a_rank_that_ends_well_and_early_is_no_recording(tmp_path: Path) -> None:
    nsys, report = Nsys(tmp_path, (2022, 4, 2, 1), "2022.4.2.1"), Report(tmp_path, imported_by_hand=False)
    with pytest.raises(InputError, match="rank 1 of the workload failed: it ended before its last step"):
        made_how(Request("eager", "cpu", 2, True), tmp_path, 1, nsys, report, tmp_path)
