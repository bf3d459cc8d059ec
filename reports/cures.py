"""What to record or type to learn what a trace does not say, by the kind of trace."""

from __future__ import annotations

from typing import Final

_NSYS: Final = {
    "version": "export with nsys 2021 or newer",
    "process": "export the report again with a newer nsys",
    "gpu": "export again with the GPU table, or give --gpu-model in a later version",
    "rank": "where MPI starts the run, record with --trace=cuda,nvtx,mpi",
    "steps": (
        "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx, "
        "or name a range with --nvtx"
    ),
    "graphs": "record with --cuda-graph-trace=node",
    "payloads": "export with --include-blobs=true from a recording with --trace=cuda,nvtx",
    "startup": "Record later: --delay 60 --duration 10, or -c cudaProfilerApi around steps 20 to 25",
    "look": "Open the recording in the nsys GUI at the times above, largest bucket first.",
}
_KINETO: Final = {
    "version": "none: the PyTorch profiler does not write its version",
    "process": "give the trace of each process as its own file",
    "gpu": "record with a PyTorch that writes deviceProperties",
    "rank": "initialise torch.distributed before the profiler starts",
    "steps": "record with a schedule and call prof.step() once per step, or name a range with --nvtx",
    "graphs": "record the kernels of graph replays, which CUPTI does by default",
    "payloads": "not read from this format yet",
    "startup": "Record later: torch.profiler.schedule(wait=20, warmup=3, active=3), prof.step() each step",
    "look": "Open the recording in Perfetto at the times above, largest bucket first.",
}


def cures(kind: str) -> dict[str, str]:
    """Cures for a trace of this kind (`traces[].kind`)."""
    return _KINETO if kind == "kineto" else _NSYS
