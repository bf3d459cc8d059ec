"""CMP-2: fused kernels for routing, permutation and loss.

Changes many small kernels, each too small to fill the GPU, into few that move their data once. Helps where
router and permute kernels take a visible part of the step; the same change as HST-4, seen from the GPU's
side. Needs Transformer Engine 2.1 for the permute fusion and 2.7 for the router fusion.
"""

from typing import Final

from heuristics.fixes import hst_4_fewer_kernels
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run


def advice(run: Run) -> tuple[Precondition, ...]:
    """As HST-4, for a model that routes tokens."""
    routes = holds("the model routes tokens", run.active.moe, told_by="record a whole step")
    return (routes, *hst_4_fewer_kernels.advice(run))


FIX: Final = Fix(
    id="CMP-2",
    wall="compute",
    title="Fuse router, permutation and loss",
    kinds=("permute", "router", "softmax", "elementwise", "loss"),
    change=hst_4_fewer_kernels.change,
    advice=advice,
    versions=hst_4_fewer_kernels.FIX.versions,
    gains=hst_4_fewer_kernels.FIX.gains,
    side_effects=hst_4_fewer_kernels.FIX.side_effects,
    excludes=("HST-4",),
    verify="router and permute kernels get fewer, and their share of the step falls",
    sources=(*hst_4_fewer_kernels.FIX.sources, "Megatron-Bridge skill perf-moe-optimization-workflow"),
    same_as="HST-4",
    pytorch=Form(
        title="Fuse element-wise work",
        code=("torch.compile(model)",),
        verify="fewer element-wise kernels in each step",
        sources=("PyTorch, torch/__init__.py",),
        side_effects=("the first steps compile: leave them out",),
    ),
)
