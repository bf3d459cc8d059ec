"""Processes and the GPUs that they ran on: counted apart, and never called alike on one screen."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import diagnoser
from bench.simulate.recording import Recording
from tests.doubles.pages import first_screen, flat
from tests.places import Export

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
US = 1_000


def working(processes: Mapping[int, int], gpus: list[Mapping[int, int] | None]) -> Recording:
    """Processes with their CUDA device: each runs 40 kernels of 90 us, one every 100 us."""
    recording = Recording()
    for used_by in gpus:
        recording.gpu(used_by=used_by)
    for pid, device in processes.items():
        for place in range(40):
            at = place * 100 * US
            recording.kernel(GEMM, at + 10 * US, at + 100 * US, launch_ns=at, pid=pid, device=device)
    return recording


@pytest.mark.parametrize(
    ("processes", "gpus", "said"),
    [
        ({5000: 0, 5001: 0}, [{5000: 0, 5001: 0}], "one GPU, H100 80GB HBM3, shared by 2 processes;"),
        ({5000: 0, 5001: 0}, [{5000: 0}, {5001: 0}], "2 x H100 80GB HBM3;"),
        ({5000: 0, 5001: 1}, [{5000: 0, 5001: 0}, {5000: 1, 5001: 1}], "2 x H100 80GB HBM3;"),
        (
            {5000: 0, 5001: 0, 5002: 1, 5003: 1},
            [dict.fromkeys(range(5000, 5004), 0), dict.fromkeys(range(5000, 5004), 1)],
            "2 GPUs, H100 80GB HBM3, shared by 4 processes;",
        ),
    ],
)
def test_gpus_are_counted_and_not_processes(
    export: Export, processes: Mapping[int, int], gpus: list[Mapping[int, int] | None], said: str
) -> None:
    screen = flat(first_screen(diagnoser.analyze(export(working(processes, gpus))).to_dict()))
    assert f"run.sqlite {said}" in screen
    alike = len({*processes.values()}) < len(processes)
    assert (re.search(r"GPU 0, process 500\d: ", screen) is not None) is alike
