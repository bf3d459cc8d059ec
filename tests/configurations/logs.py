"""Logs in the frameworks' formats, written for tests."""

from __future__ import annotations

from pathlib import Path

from heuristics.rules.rules import known_lines
from tests.places import DATA
from traces.training_log.log import TrainingLog
from traces.training_log.read import read_log

EXCERPTS = DATA / "logs"


def log_of(tmp_path: Path, *lines: str) -> TrainingLog:
    path = tmp_path / f"run-{sum(1 for _ in tmp_path.iterdir())}.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read(path)


def read(path: Path) -> TrainingLog:
    return read_log(path, known_lines())


def iteration(index: int, ms: float, total: int = 100, tail: str = "", batch: int = 8) -> str:
    return (
        f" [2026-08-22 10:00:00.000000] iteration {index:8d}/{total:8d} | consumed samples: {index * 8:12d} |"
        f" elapsed time per iteration (ms): {ms:.1f} |{tail} learning rate: 1.000000E-04 |"
        f" global batch size: {batch:5d} | lm loss: 1.000000E+00 | loss scale: 1.0 | grad norm: 1.000 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def step_time(seconds: float, tflops: float) -> str:
    return f"Step Time : {seconds:.2f}s GPU utilization: {tflops:.1f}MODEL_TFLOP/s/GPU"


def frame(name: str, path: str = "/opt/megatron/training/training.py") -> str:
    return f'[rank3]:   File "{path}", line 10, in {name}'


def out_of_memory(
    requested: str = "2.00 GiB", allocated: str = "70.00 GiB", unallocated: str = "1.00 GiB", pools: str = ""
) -> str:
    return (
        f"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. "
        "GPU 3 has a total capacity of 80.00 GiB of which 512.00 MiB is free. "
        "Including non-PyTorch memory, this process has 79.50 GiB memory in use. "
        f"Of the allocated memory {allocated} is allocated by PyTorch,{pools} and "
        f"{unallocated} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )


def crash(*names: str, last: str) -> tuple[str, ...]:
    return ("[rank3]: Traceback (most recent call last):", *(frame(*name.split("@")) for name in names), last)
