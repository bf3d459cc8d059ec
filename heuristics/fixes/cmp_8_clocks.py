"""CMP-8: clocks that favour the GPU's cores over its memory.

Changes how the GPU spends its power: a little less for memory, more for the cores. Helps a step that GEMMs
fill; a step that waits, or that memory holds back, gains nothing. Needs rights on the machine, and every GPU
of the run set alike, or the slowest sets the pace.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run


def change(run: Run) -> Change:
    """Before the run, on every node."""
    del run
    command = "(on every node, before the run: sudo nvidia-smi boost-slider --vboost 1)"
    return Change(harness=("--enable_vboost true",), launch=(command,))


def advice(run: Run) -> tuple[Precondition, ...]:
    """Rights that no trace shows."""
    del run
    return (holds("the nodes let you set clocks", None, told_by="ask who runs the cluster"),)


FIX: Final = Fix(
    id="CMP-8",
    wall="compute",
    title="Raise the GPU clocks",
    change=change,
    advice=advice,
    versions="no matter of Megatron's: the driver's; Megatron-Bridge's harness takes the flag on Slurm only",
    side_effects=("kernels that memory holds back get slower", "a GPU left out makes all others wait"),
    verify="GEMMs get shorter by the same part on every rank, memory-bound kernels hardly longer",
    sources=(
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        "Megatron-Bridge, scripts/performance/README.md at 067f987d",
    ),
    direct=(),  # faster clocks leave as many SMs empty
    any_framework=True,
)
