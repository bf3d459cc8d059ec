"""A recording's fitness in words: what it holds, what it lacks and what that makes impossible."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from reports.words import percent, printable
from traces.columns import TraceInfo
from traces.cures import cure
from traces.measure.capture import Capture

_LACKING: Final = {
    "kernels": ("nothing can be diagnosed", "--trace=cuda,nvtx --cuda-graph-trace=node"),
    "CUDA calls": ("why no compute ran cannot be told: launches are unknown", "--trace=cuda"),
    "NVTX ranges": ("steps must be found without names, phases and layers stay unknown", "--trace=cuda,nvtx"),
    "event records": (
        "waits between streams are inferred, not recorded",
        "--cuda-event-trace=true (a recent nsys)",
    ),
    "memory events": (
        "whether the run has room in the GPU's memory cannot be told",
        "--cuda-memory-usage=true, from the program's start",
    ),
    "OS calls": ("waits of the host for the operating system look like Python", "--trace=cuda,nvtx,osrt"),
    "GPU counter samples": (
        "how busy the SMs were inside kernels is not measured, only what launches allow",
        "--gpu-metrics-devices=cuda-visible (old nsys: --gpu-metrics-device=0; needs counter permission)",
    ),
}
"""What is missing -> what that makes impossible, and the option of `nsys profile` that records it."""

_LINE: Final = (
    "nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node --sample=none "
    "-c cudaProfilerApi --capture-range-end=stop -o run_%q{RANK} python train.py"
)
_KINETO_LINE: Final = (
    "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
    "schedule=torch.profiler.schedule(wait=5, warmup=2, active=3), profile_memory=True), "
    "prof.step() once per step"
)


def render_capture(info: TraceInfo, capture: Capture) -> str:
    """The report of `moe-diag doctor TRACE`, at most 80 columns, ending in a line break."""
    lines = [
        printable(info.name, 70),
        "",
        *_recorded(capture),
        "",
        *_lacking(info, capture),
        *_clocks(capture),
    ]
    lines += [*_graphs(info, capture), *_notes(info), "", "Record it like this:"]
    lines += _wrap(_KINETO_LINE if info.kind == "kineto" else _LINE)
    return "\n".join(lines) + "\n"


def _recorded(capture: Capture) -> Iterator[str]:
    yield "Recorded:"
    for name, count in capture.rows.items():
        if count:
            yield f"  {name:<22}{count:>12,}"
    if capture.correlation_frac is not None:
        yield from _wrap(f"{percent(capture.correlation_frac)} of the kernels have their launch recorded.")


def _lacking(info: TraceInfo, capture: Capture) -> Iterator[str]:
    missing = {name: _LACKING[name] for name in _LACKING if not capture.rows[name]}
    if "kernels" in missing and capture.rows["graph replays"]:
        opaque = "compute and communication in graph replays cannot be told apart"
        missing["kernels"] = (opaque, "--cuda-graph-trace=node")
    yield (
        "Missing, and what that makes impossible:"
        if missing
        else "Nothing that the diagnosis uses is missing."
    )
    for name, (impossible, option) in missing.items():
        how = "" if info.kind == "kineto" else f" Record with {option}."
        yield from _wrap(f"- no {name}: {impossible}.{how}")


def _clocks(capture: Capture) -> Iterator[str]:
    for (process, device), offset_ns in capture.clock_offset_ns.items():
        if offset_ns:
            yield from _wrap(
                f"- process {process}, GPU {device}: nothing starts within 50 us of its launch, so host and "
                f"GPU clocks may be apart, by about {offset_ns / 1e6:.0f} ms: why no compute ran is not told."
            )


def _graphs(info: TraceInfo, capture: Capture) -> Iterator[str]:
    if capture.opaque_graph_launches:
        yield from _wrap(
            f"- {capture.opaque_graph_launches} of {capture.graph_launches} CUDA graph launches show no "
            f"work: idle time may be work. To see it: {cure('graphs', info.kind)}."
        )


def _notes(info: TraceInfo) -> Iterator[str]:
    if info.diagnostics:
        yield ""
        yield "The recording notes:"
        for said in info.diagnostics:
            yield from _wrap(f"- {said}")


def _wrap(text: str) -> list[str]:
    hang = "    " if text.startswith("- ") else "  "
    return textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent=hang, break_on_hyphens=False)
