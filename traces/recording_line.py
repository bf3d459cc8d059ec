"""The line that records what a recording lacks: a command of nsys, or a call of the PyTorch profiler."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_NSYS: Final = ("--trace=cuda,nvtx,osrt", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none")
_NSYS_EXTRA: Final = {
    "event records": "--cuda-event-trace=true",
    "memory events": "--cuda-memory-usage=true",
}
"""What was not recorded -> the option that records it beside the usual ones."""
_FROM_START: Final = ("--duration=180",)
_A_RANGE: Final = ("-c cudaProfilerApi", "--capture-range-end=stop")
"""Memory in use is known only where the recording begins with the program; else a few steady steps do."""
_KINETO_EXTRA: Final = {
    "event records": (
        "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)"
    ),
    "memory events": "profile_memory=True",
}


def recording_line(kind: str, lacking: Collection[str]) -> tuple[str, ...]:
    """One command line for nsys, or the lines of one call; `lacking`: rows of `Capture` to record as well."""
    if kind == "kineto":
        return _kineto(lacking)
    extra = (option for row, option in _NSYS_EXTRA.items() if row in lacking)
    when = _FROM_START if "memory events" in lacking else _A_RANGE
    return (" ".join(("nsys profile", *_NSYS, *extra, *when, "-o run_%q{RANK}", "python train.py")),)


def _kineto(lacking: Collection[str]) -> tuple[str, ...]:
    extra = (f"    {argument}," for row, argument in _KINETO_EXTRA.items() if row in lacking)
    return (
        "prof = torch.profiler.profile(",
        "    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],",
        "    schedule=torch.profiler.schedule(wait=20, warmup=3, active=3),",
        *extra,
        ")  # and prof.step() once per step",
    )
