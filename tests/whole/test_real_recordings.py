"""Fourteen recordings that others made, each with what its README knows of it (shared traces, folder real).

Figures beside a case were read off the file by SQL or JSON, apart from the program: DataLoader.__next__ of
resnet50_workers0 lasts 279.7 ms of 928, of param_resnet 62 % of the span; the ten graph replays last 781.0 to
781.6 ms; three steps of tl_resnet_act_checkpoint begin 18.98 ms apart on the GPU, after 30.05 ms that were
launched before the recording.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from reports.result.codec import Document

DATA = {
    "hackathon_mnist_0_baseline.sqlite": (0.90, 1.0),
    "hackathon_mnist_1_nvtx.sqlite": (0.90, 1.0),
    "hackathon_mnist_2_workers.sqlite": (0.90, 1.0),
    "resnet50_workers0.pt.trace.json.gz": (0.19, 0.29),
    "param_resnet.json.gz": (0.50, 0.62),
}
"""Recordings that wait for data, and between which shares of the step the host costs."""


@pytest.fixture
def real(recordings: Path) -> Path:
    return recordings / "real"


def document_of(path: Path) -> Document:
    return diagnoser.analyze(path).to_dict()


def wall(document: Document, name: str) -> Document:
    found: Document = next(one for one in document["walls"] if one["id"] == name)
    return found


@pytest.mark.parametrize("name", DATA)
def test_a_run_that_starves_for_data_says_so_and_loads_ahead_first(real: Path, name: str) -> None:
    document = document_of(real / name)
    least, most = DATA[name]
    assert (document["verdict"]["wall"], document["verdict"]["kind"]) == ("host_overhead", "data")
    assert least <= wall(document, "host_overhead")["cost_frac"] <= most
    assert document["fixes"][0]["id"] == "HST-10"
    assert "HST-2" not in [one["id"] for one in document["fixes"][:1]]
    assert document["ranks"][0]["detected"]["training_step"] is True
    assert wall(document, "memory")["outcome"] == "clear"


WORKERS = {
    "hackathon_mnist_0_baseline.sqlite": 1,
    "hackathon_mnist_1_nvtx.sqlite": 1,
    "hackathon_mnist_2_workers.sqlite": 2,
    "param_resnet.json.gz": 4,
}
"""As the series says of its own runs (1, then 2); the last waits about 0.6 s every fourth step."""


@pytest.mark.parametrize("name", WORKERS)
def test_the_rhythm_of_waits_tells_how_many_workers_load(real: Path, name: str) -> None:
    assert document_of(real / name)["ranks"][0]["data_loading"]["workers"] == WORKERS[name]


def test_ten_equal_graph_replays_are_ten_steps_of_which_only_the_host_is_judged(real: Path) -> None:
    document = document_of(real / "a100_llm_2_7B_cudagraph.sqlite")
    steps = document["ranks"][0]["steps"]
    assert (steps["source"], len(steps["used"])) == ("graph", 10)
    assert 780_900_000 < steps["min_ns"] <= steps["max_ns"] < 782_000_000
    outcomes = {one["id"]: one["outcome"] for one in document["walls"]}
    assert outcomes.pop("host_overhead") == "clear"
    assert {*outcomes.values()} == {"unmeasurable"}


def test_a_host_that_is_ahead_has_its_steps_cut_on_the_gpus_time(real: Path) -> None:
    document = document_of(real / "tl_resnet_act_checkpoint.json.gz")
    steps = document["ranks"][0]["steps"]
    assert [one["end_ns"] - one["start_ns"] for one in steps["used"]] == [18_980_345, 18_982_928, 18_554_331]
    rank = document["ranks"][0]
    assert rank["budget_ns"]["exposed_comm"] / rank["budget_ns"]["window"] == pytest.approx(0.63, abs=0.015)
    assert document["verdict"]["wall"] == "communication"
    assert rank["exposed_comm_by_kind_ns"]["all_reduce"] > 0.99 * rank["budget_ns"]["exposed_comm"]
    assert [one["id"] for one in document["fixes"]] == ["COM-4"]


def test_a_listless_trace_has_the_sms_of_its_gpu_and_16_bits_first(real: Path) -> None:
    """By hand: blocks x threads / 32 / "warps per SM" is 80 for each of the 9,456 kernels."""
    document = document_of(real / "resnet50_workers4.pt.trace.json.gz")
    assert document["traces"][0]["gpus"][0]["sm_count"] == 80
    assert wall(document, "compute")["at_most_frac"] > 0.5
    assert document["levers"][0]["id"] == "CMP-9"
    assert {wall(document, name)["outcome"] for name in ("host_overhead", "memory")} == {"clear"}


@pytest.mark.parametrize("name", ["flameox_graph_2025.sqlite"])
def test_three_kernels_are_too_few_to_judge_memory_by(real: Path, name: str) -> None:
    memory = wall(document_of(real / name), "memory")
    assert memory["outcome"] == "unmeasurable"
    assert memory["missing"][0].startswith("3 kernels")
    assert "no step" in memory["missing"][0]
