"""MEM-13: NCCL's buffers, and those PyTorch keeps for it.

Changes two variables of the environment: NVLink SHARP off, whose buffers nothing needs while no user buffers
are registered, and no tensors kept alive until a collective has been waited for. Helps where reserved memory
is what does not fit; it costs nothing to try. Pointless beside NCCL user buffers, which switch NVLink SHARP
on themselves.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already_so, no_user_buffers
from heuristics.run.run import Run

_OFF: Final = "env.NCCL_NVLS_ENABLE"
_ON: Final = "env.TORCH_NCCL_AVOID_RECORD_STREAMS"


def change(run: Run) -> Change:
    """Environment of every rank."""
    del run
    return Change({_OFF: "0", _ON: "1"})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Variables that are not set so already, and no user buffers."""
    so = run.config.on(_OFF) is False and run.config.on(_ON) is True
    return (*already_so(_OFF, so), no_user_buffers(run))


FIX: Final = Fix(
    id="MEM-13",
    wall="memory",
    title="Let NCCL and PyTorch keep fewer buffers",
    change=change,
    advice=advice,
    versions="any Megatron release: both are read by NCCL and by PyTorch",
    side_effects=("all-reduce inside a node loses NVLink SHARP",),
    verify="reserved memory falls at equal allocated memory; collectives take no longer",
    sources=("Megatron-Bridge, docs/performance-guide.md at 067f987d",),
    wins=("recompute", "allocator"),  # with room, both can go
)
