"""Our own recordings: each state runs where PyTorch is installed, and says what it is."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.workload.__main__ import main
from bench.workload.states import SIZES, STATES
from bench.workload.workload import workload
from diagnoser.cli import run
from tests.places import ROOT
from traces.errors import OutputNotWritable, UsageError
from traces.formats.kineto import read_kineto


def unpacked(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def test_every_state_has_a_partner_and_as_many_expert_weights() -> None:
    for state in STATES.values():
        assert STATES[state.beside] != state
        for sizes in SIZES.values():
            assert sizes.ffn(state) * state.expert_count == sizes.ffn_total
            assert sizes.capacity(state) * state.expert_count == sizes.token_count * sizes.top_k


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"state": "lazy"}, UsageError, "there are eager,"),
        ({"device": "tpu"}, UsageError, "--device"),
        ({"step_count": 0}, UsageError, "--steps"),
        ({"out": "run.json"}, UsageError, "does not end with .json.gz"),
        ({"out": "absent/run.json.gz"}, OutputNotWritable, "is no folder"),
        ({"out": "taken.json.gz"}, UsageError, "taken.known.json exists"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_runs(
    tmp_path: Path, asked: dict[str, Any], error: type[Exception], said: str
) -> None:
    (tmp_path / "taken.known.json").touch()
    given = {"state": "eager", "out": "run.json.gz", **asked}
    with pytest.raises(error, match=said):
        workload(given.pop("state"), tmp_path / given.pop("out"), **given)


def test_without_pytorch_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    out = str(tmp_path / "run.json.gz")
    assert main(["--state", "eager", "--out", out, "--device", "cpu"]) == 3
    assert "pip install torch" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_importing_the_script_does_not_import_pytorch() -> None:
    program = "import sys, bench.workload.workload; sys.stdout.write(str('torch' in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every state, recorded on the CPU in a process of its own."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: would have shown that every state of our own workload runs")
    folder = tmp_path_factory.mktemp("states")
    program = (
        "import sys; from pathlib import Path; from bench.workload.workload import workload\n"
        "for state in sys.argv[2:]:\n"
        "    workload(state, Path(sys.argv[1], state + '.json.gz'), step_count=2, device='cpu')"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(folder), *STATES], cwd=ROOT, check=True, capture_output=True
    )
    return folder


@pytest.mark.parametrize("state", STATES)
def test_a_state_without_a_gpu_is_recorded_and_says_what_was_not_done(recorded: Path, state: str) -> None:
    made = json.loads((recorded / f"{state}.known.json").read_text(encoding="utf-8"))
    assert (made["state"], made["gpu"], made["gpu_event_count"]) == (state, None, 0)
    needs_gpu = STATES[state].cuda_graph or STATES[state].copies != "none"
    assert bool(made["not_done"]) == needs_gpu
    assert made["ran_as"] == ("eager" if needs_gpu else state)
    ranges = read_kineto(recorded / f"{state}.json.gz").range_texts
    steps = [text for text in ranges if text.startswith("ProfilerStep#")]
    assert len(steps) == made["recorded_step_count"] == 2


@pytest.mark.parametrize("state", STATES)
def test_a_recording_without_a_gpu_has_nothing_to_diagnose(
    recorded: Path, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(recorded / f"{state}.json.gz")]) == 4
    assert "has no kernels: nothing to diagnose. Record the GPU" in capsys.readouterr().err


def test_our_recordings_name_no_person_machine_or_folder(recorded: Path) -> None:
    private = {os.uname().nodename, str(Path.home()), str(ROOT), "/tmp/", sys.executable}
    for path in recorded.iterdir():
        text = unpacked(path) if path.suffix == ".gz" else path.read_text(encoding="utf-8")
        assert [word for word in private if len(word) > 2 and word in text] == []


def test_recompute_runs_forward_twice_and_each_expert_is_launched_by_itself(recorded: Path) -> None:
    def count(state: str, name: str) -> int:
        columns = read_kineto(recorded / f"{state}.json.gz")
        return sum(columns.range_texts[text] == name for text in columns.ranges.text.tolist())

    layers_and_steps = SIZES["cpu"].layer_count * 2
    assert count("eager", "route") == layers_and_steps
    assert count("recompute", "route") == 2 * layers_and_steps
    assert count("recompute", "backward") == count("eager", "backward") == 2
    assert count("many_small_experts", "aten::silu") == 64 * layers_and_steps
    assert count("few_large_experts", "aten::silu") == 4 * layers_and_steps


READS = """
import sys, torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from bench.workload.model import Stack
from bench.workload.states import STATES
from bench.workload.step import Steps
for name, state in STATES.items():
    with FakeTensorMode():
        try:
            model = Stack(torch, state, "cpu", megatron=False)
            Steps(torch, model, state, "cpu", torch.profiler.record_function).step()
        except DataDependentOutputException:
            sys.stdout.write(name)
"""
"""Runs each state on tensors without values, so that whoever reads one fails."""


def test_only_in_the_state_that_says_so_does_the_host_read_values(recorded: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "host_counts"
