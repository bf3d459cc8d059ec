"""What to record or type to learn what a trace does not say, in the terms of what recorded it."""

from collections.abc import Callable, Mapping
from typing import Final

from traces.recording.line import recording, schedule
from traces.recording.recorder import NSYS, TORCH, recorded_by

_BOTH: Final = {
    # what is missing: (for nsys, for the PyTorch profiler)
    "version": (
        "export with nsys 2021 or newer",
        "none: the PyTorch profiler does not write its version",
    ),
    "process": (
        "export the report again with a newer nsys",
        "give the trace of each process as its own file",
    ),
    "gpu": (
        "export again with the GPU table",
        "record with a PyTorch that writes deviceProperties",
    ),
    "rank": (
        "where MPI starts the run, record with --trace=cuda,nvtx,mpi; or give analyze --ranks "
        "MAP.csv",
        "initialise torch.distributed before the profiler starts; or give analyze --ranks MAP.csv",
    ),
    "steps": (
        "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx, "
        "or name a range with --nvtx",
        "record with a schedule and call prof.step() once per step, or name a range with --nvtx",
    ),
    "two_steps": (
        "record at least two steps, with --trace=cuda",
        "record at least two steps: torch.profiler.schedule(..., active=2) and prof.step()",
    ),
    "whole_steps": (
        "record whole steps of the run: moe-diag capture --for walls",
        "record whole steps of the run: <schedule>, prof.step() each step",
    ),
    "launches": (
        "record with --trace=cuda",
        "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    ),
    "launch_threads": (
        "record with --trace=cuda,nvtx, so that every launch has its thread",
        "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]: launches then have "
        "threads",
    ),
    "threads": (
        "record whole steps with nsys, which notes the names of threads",
        "none in this format, which does not note the names of threads",
    ),
    "stacks": (
        "record what the host does: moe-diag capture --for host; --full then lists the late "
        "functions",
        "record with with_stack=True, with_modules=True; --full then lists the late functions",
    ),
    "functions": (
        "record what the host does: moe-diag capture --for host",
        "record with torch.profiler.profile(..., with_stack=True, with_modules=True)",
    ),
    "recorded_stacks": (
        "read the table Whose time it is of --full: the functions in which launches are late",
        "read the table Whose time it is of --full: the Python functions in which launches are "
        "late",
    ),
    "all_ranks": (
        "record every rank of the group, and give analyze the folder",
        "record every rank of the group, and give analyze the folder",
    ),
    "slow_kernels": (
        "list the kernels with --full, and look at the longest with Nsight Compute",
        "list the kernels with --full, and look at the longest with Nsight Compute",
    ),
    "unknown_kernels": (
        "look up the kernels that --full lists as unknown in the sources of the program and of its "
        "libraries",
        "look up the kernels that --full lists as unknown in the sources of the program and of its "
        "libraries",
    ),
    "graphs": (
        "record with --cuda-graph-trace=node",
        "record the kernels of graph replays, which CUPTI does by default",
    ),
    "dropped_graphs": (
        "record with --cuda-graph-trace=node, or export with nsys 2024.3 or newer",
        "record the kernels of graph replays, which CUPTI does by default",
    ),
    "work": (
        "<nsys>",
        "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    ),
    "names": (
        "record with --cuda-graph-trace=node, and export all tables",
        "record the kernels of graph replays and their names, which CUPTI does by default",
    ),
    "all_names": (
        "export the report again, with all tables",
        "record again: the PyTorch profiler names every kernel",
    ),
    "events": (
        "record with --cuda-event-trace=true (nsys 2024.3 or newer), and more steps",
        "record more steps in the schedule, and with "
        "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)",
    ),
    "host_waits": (
        "record with --trace=cuda,nvtx,osrt and --cuda-event-trace=true",
        "record with enable_cuda_sync_events=True in the experimental_config, and without "
        "with_stack and "
        "record_shapes, which slow the host",
    ),
    "memory_kinds": (
        "export the whole table of copies",
        "record with a PyTorch that writes the memory of copies in their names",
    ),
    "shapes": (
        "export the whole kernel table",
        "record with a PyTorch that writes grid and block of kernels",
    ),
    "operator_shapes": (
        "record a few steps with the PyTorch profiler and record_shapes=True: nsys records no "
        "shapes",
        "record with torch.profiler.profile(..., record_shapes=True)",
    ),
    "sm_count": ("export the GPU table too", "record with a PyTorch that writes deviceProperties"),
    "gpu_limits": (
        "record where nsys sees the GPU, and export all tables",
        "record with a PyTorch that writes deviceProperties",
    ),
    "counters": (
        "record GPU counters in a pass of their own: moe-diag capture --for metrics",
        "none in this format: the PyTorch profiler samples no counters of the GPU",
    ),
    "memory_use": (
        "record from the start of the program, without a capture range, with "
        "--cuda-memory-usage=true; "
        "or record a few steps with the PyTorch profiler and profile_memory=True",
        "record with torch.profiler.profile(..., profile_memory=True)",
    ),
    "payloads": (
        "export with --include-blobs=true from a recording with --trace=cuda,nvtx",
        "not read from this format yet",
    ),
    "collectives": (
        "Record NVTX too (nsys profile --trace=cuda,nvtx): NCCL's own ranges then count sends and "
        "receives.",
        "Record with a PyTorch that writes the collective and its process group beside each NCCL "
        "kernel.",
    ),
    "ranges": ("record NVTX ranges", "record ranges with torch.profiler.record_function"),
    "layer_ranges": (
        "record NVTX ranges of the layers (layer_0f, layer_0b)",
        "record ranges of the layers: torch.profiler.record_function('layer_0f') and 'layer_0b'",
    ),
    "purpose_ranges": (
        "record NVTX ranges (Megatron-LM: --nvtx-ranges)",
        "record ranges with torch.profiler.record_function (Megatron-LM: --nvtx-ranges)",
    ),
    "told_apart": (
        "record with NVTX ranges, so that NCCL can be separated",
        "record after torch.distributed started, so that NCCL's kernels carry their process group",
    ),
    "startup": (
        "Record later: moe-diag capture --for walls, or --delay 60 --duration 10 --kill=none",
        "Record later: <schedule>, prof.step() each step",
    ),
    "launched_before": (
        "Begin to record earlier: the host waits for work that was launched before",
        "Begin to record earlier, <schedule>: the host waits for work that was launched before",
    ),
    "look": (
        "Open the recording in the nsys GUI at the times above, largest bucket first.",
        "Open the recording in Perfetto at the times above, largest bucket first.",
    ),
}


_OF_OTHERS: Final = {
    "process": "give the trace of each process as its own file",
    "rank": "give analyze --ranks MAP.csv",
    "steps": "name a range with --nvtx",
    "collectives": "Record with nsys or the PyTorch profiler, which note what each NCCL kernel is "
    "for.",
    "startup": "Record later, when the first steps are over",
    "look": "Open the recording at the times above, largest bucket first.",
}
"""The same for traces of a recorder that we do not know; for all else one sentence."""
_OTHERWISE: Final = (
    "record the run with nsys or the PyTorch profiler (moe-diag capture), which can note it"
)
_FILLED: Final[Mapping[str, Callable[[], str]]] = {
    "<schedule>": schedule,
    "<nsys>": lambda: recording().nsys,
}


def cure(missing: str, kind: str | None) -> str:
    """The cure for what is missing in a trace of this kind (`traces[].kind`); nsys's where there is
    none.

    Raises KeyError for something that no recording would tell.
    """
    nsys, torch = _BOTH[missing]
    recorder = NSYS if kind is None else recorded_by(kind)
    other = nsys if nsys == torch else _OF_OTHERS.get(missing, _OTHERWISE)
    text = {NSYS: nsys, TORCH: torch}.get(recorder, other)
    for place, fill in _FILLED.items():
        if place in text:
            text = text.replace(place, fill())
    return text


def cures(kind: str) -> dict[str, str]:
    """Every cure for a trace of this kind."""
    return {missing: cure(missing, kind) for missing in _BOTH}
