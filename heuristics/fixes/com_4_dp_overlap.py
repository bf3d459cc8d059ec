"""COM-4: gradient reduce-scatter under backward, parameter all-gather under forward.

Changes when data-parallel collectives start: bucket by bucket as gradients are ready, instead of at the
step's edges. Helps where reduce-scatter or all-gather of data parallelism is exposed. Needs the distributed
optimizer. Persistent norm kernels wait for all SMs and so behind the collective: a margin of SMs for them
goes with it.
"""

from typing import Final

from heuristics.config.logic import all_of
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit

NORM_MARGIN: Final = Limit(
    16, "SMs", "Megatron-Bridge, docs/performance-guide.md: the SMs data-parallel collectives take"
)
_OVERLAPS: Final = ("overlap_grad_reduce", "overlap_param_gather")


def change(run: Run) -> Change:
    """Both overlaps, with what they need; aligned across stages where stages are cut into virtual ones."""
    aligned = run.config.vpp is not None and run.config.vpp > 1
    margin = str(int(NORM_MARGIN.value))
    return Change(
        {
            "ddp.use_distributed_optimizer": True,
            **{f"ddp.{name}": True for name in _OVERLAPS},
            "env.NVTE_FWD_LAYERNORM_SM_MARGIN": margin,
            "env.NVTE_BWD_LAYERNORM_SM_MARGIN": margin,
        },
        megatron_bridge={"ddp.align_param_gather": True} if aligned else {},
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """Data parallelism that communicates. Whether the overlaps are on, no trace says for sure."""
    return (
        holds(
            "data-parallel collectives run",
            run.active.dp_active,
            told_by=cure("told_apart", run.active.recorder),
        ),
        is_not(
            "the overlaps are off so far",
            all_of(*(run.config.overlap(name) for name in _OVERLAPS)),
            told_by="overlap_grad_reduce and overlap_param_gather of the configuration",
        ),
    )


FIX: Final = Fix(
    id="COM-4",
    wall="communication",
    title="Overlap data-parallel reduce-scatter and all-gather",
    kinds=("dp_reduce_scatter", "dp_all_gather"),
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here. Megatron-Bridge switches both on where DP is above 1 and the "
        "distributed optimizer is used; a comm_overlap section writes its own values over ddp"
    ),
    side_effects=(
        (
            "with delayed weight gradients it needs Transformer Engine 2.8 (Megatron-LM) or 2.7 "
            "(Megatron-Bridge)"
        ),
        "collectives take SMs from the compute they run beside",
    ),
    verify=(
        "reduce-scatter lies under backward and all-gather under forward; exposed data-parallel time falls"
    ),
    sources=(
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py at 067f987d",
    ),
    pytorch=Form(
        title="Overlap the reduction of gradients with backward",
        code=(
            "DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)",
            "with model.no_sync(): (every micro-batch of a step but the last)",
            "or FSDP2: fully_shard(layer) for each layer, so that the next one is gathered ahead",
        ),
        verify="all-reduce or reduce-scatter lies under backward; exposed data-parallel time falls",
        sources=("PyTorch, torch/nn/parallel/distributed.py and torch/distributed/fsdp",),
        side_effects=("larger buckets are sent later; collectives take SMs from the compute beside them",),
        kinds=("dp_reduce_scatter", "dp_all_gather", "all_reduce"),
        advice=lambda run: (
            holds("DDP or FSDP reduces the gradients", run.active.dp_active, told_by="the training script"),
        ),
    ),
)
