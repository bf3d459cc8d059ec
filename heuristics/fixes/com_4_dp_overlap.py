"""COM-4: gradient reduce-scatter under backward, parameter all-gather under forward.

Changes when data-parallel collectives start: bucket by bucket as gradients are ready, instead of at the
step's edges. Helps where reduce-scatter or all-gather of data parallelism is exposed. Needs the distributed
optimizer. Persistent norm kernels wait for all SMs and so behind the collective: a margin of SMs for them
goes with it.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of
from heuristics.fixes.fix import Fix, Form, Knobs, Precondition
from heuristics.fixes.preconditions import asked, holds, is_not
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit

NORM_MARGIN: Final = Limit(
    16, "SMs", "Megatron-Bridge, docs/performance-guide.md: the SMs data-parallel collectives take"
)


_OVERLAPS: Final = ("overlap_grad_reduce", "overlap_param_gather")


def knobs(run: Run) -> Knobs:
    """Both overlaps, with what they need; aligned across stages where stages are cut into virtual ones."""
    aligned = run.config.vpp is not None and run.config.vpp > 1
    margin = int(NORM_MARGIN.value)
    section = "comm_overlap" if any(run.config.known(f"comm_overlap.{name}") for name in _OVERLAPS) else "ddp"
    return Knobs(
        megatron_lm=("--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"),
        megatron_bridge=(
            "ddp.use_distributed_optimizer=true",
            *(f"{section}.{name}=true" for name in _OVERLAPS),
            *(("ddp.align_param_gather=true",) if aligned else ()),
        ),
        environment=(
            f"NVTE_FWD_LAYERNORM_SM_MARGIN={margin}",
            f"NVTE_BWD_LAYERNORM_SM_MARGIN={margin}",
        ),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Data parallelism that communicates. Whether the overlaps are on, no trace says for sure."""
    on = all_of(*(run.config.overlap(name) for name in _OVERLAPS))
    return (
        holds(
            "data-parallel collectives run",
            run.active.dp_active,
            asked(run.active.dp_active, cure("told_apart", run.active.recorder)),
        ),
        is_not(
            "the overlaps are off so far",
            on,
            asked(on, "overlap_grad_reduce and overlap_param_gather of the configuration"),
        ),
    )


FIX: Final = Fix(
    id="COM-4",
    wall="communication",
    title="Overlap data-parallel reduce-scatter and all-gather",
    kinds=("dp_reduce_scatter", "dp_all_gather"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "every Megatron-Core release here. Megatron-Bridge switches both on where DP is above 1 and the "
        "distributed optimizer is used; a comm_overlap section writes its own values over ddp"
    ),
    gains=(),
    side_effects=(
        (
            "with delayed weight gradients it needs Transformer Engine 2.8 (Megatron-LM) or 2.7 "
            "(Megatron-Bridge)"
        ),
        "collectives take SMs from the compute they run beside",
    ),
    excludes=(),
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
        preconditions=lambda run: (
            holds("DDP or FSDP reduces the gradients", run.active.dp_active, "the training script"),
        ),
    ),
)
