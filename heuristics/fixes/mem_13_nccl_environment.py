"""MEM-13: NCCL's buffers, and those PyTorch keeps for it.

Changes two variables of the environment: NVLink SHARP off, whose buffers nothing needs while no user buffers
are registered, and no tensors kept alive until a collective has been waited for. Helps where reserved memory
is what does not fit; it costs nothing to try. Pointless beside NCCL user buffers, which switch NVLink SHARP
on themselves.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import already_so, is_not
from heuristics.run.run import Run

_OFF: Final = "NCCL_NVLS_ENABLE"
_ON: Final = "TORCH_NCCL_AVOID_RECORD_STREAMS"


def knobs(run: Run) -> Knobs:
    """Environment of every rank."""
    del run
    environment = (f"{_OFF}=0", f"{_ON}=1")
    return Knobs(bridge_harness=tuple(f"--env {one}" for one in environment), environment=environment)


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Variables that are not set so already, and no user buffers."""
    so = run.config.on(f"env.{_OFF}") is False and run.config.on(f"env.{_ON}") is True
    return (
        *already_so(f"env.{_OFF}", so),
        is_not(
            "NCCL user buffers are off",
            run.config.on("ddp.nccl_ub"),
            "--use-nccl-ub (--nccl_ub) left out of the run",
        ),
    )


FIX: Final = Fix(
    id="MEM-13",
    wall="memory",
    title="Let NCCL and PyTorch keep fewer buffers",
    kinds=(),
    knobs=knobs,
    preconditions=preconditions,
    versions="any Megatron release: both are read by NCCL and by PyTorch",
    gains=(),
    side_effects=("all-reduce inside a node loses NVLink SHARP",),
    excludes=(),
    verify="reserved memory falls at equal allocated memory; collectives take no longer",
    sources=("Megatron-Bridge, docs/performance-guide.md at 067f987d",),
    wins=("recompute", "allocator"),  # with room, both can go
)
