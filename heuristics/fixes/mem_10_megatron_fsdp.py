"""MEM-10: weights, gradients and optimizer state sharded over data-parallel ranks (Megatron-FSDP).

Changes what each data-parallel rank keeps: a part of every layer, gathered just before it is used. Helps
where the model's state fills memory and EP, PP and the optimizer's own cures have been taken; activations
stay as they are. Refused by one hardware queue, by PyTorch's own FSDP2, by another checkpoint format, and by
optimizers other than Adam and SGD.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, holds, is_not, optimizer_is, training
from heuristics.guides.parallel import connections
from heuristics.run.run import Run
from traces.cures import cure

_FSDP: Final = "ddp.use_megatron_fsdp"


def change(run: Run) -> Change:
    """Everything sharded, in the checkpoint format that it asserts, with more than one hardware queue."""
    return Change(
        {
            _FSDP: True,
            "ddp.use_distributed_optimizer": True,
            "ddp.data_parallel_sharding_strategy": "optim_grads_params",
            "ddp.average_in_collective": False,
            "checkpoint.ckpt_format": "fsdp_dtensor",
            "env.CUDA_DEVICE_MAX_CONNECTIONS": str(connections(run, fsdp=True)),
        },
        harness=("--use_megatron_fsdp true",),
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-LM and Megatron-Bridge assert, and ranks to share the state."""
    shared = run.active.dp_active or (run.config.dp or 1) > 1
    return (
        *already(run, _FSDP),
        training(run),
        holds(
            "more than one data-parallel rank shares the state",
            shared or None,
            told_by=f"{cure('told_apart', run.active.recorder)}; or world_size and parallel sizes",
            blocks=True,
        ),
        is_not("PyTorch's FSDP2 is off", run.config.on("use_torch_fsdp2"), "--use-torch-fsdp2 left out"),
        optimizer_is(run, "the optimizer is Adam or SGD", "adam", "sgd"),
        is_not(
            "ranks have the default order",
            run.config.on("use_tp_pp_dp_mapping"),
            "--use-tp-pp-dp-mapping left out",
        ),
        is_not(
            "expert weights are not one grouped tensor",
            run.config.on("moe_single_grouped_weight", "moe_single_grouped_bias"),
            "moe_single_grouped_weight of the configuration",
        ),
    )


FIX: Final = Fix(
    id="MEM-10",
    wall="memory",
    title="Shard weights, gradients and optimizer state (Megatron-FSDP)",
    change=change,
    advice=advice,
    versions=(
        "Megatron-Core 0.14 and later, before as --use-custom-fsdp. Version 2 on main trains dense models in "
        "BF16 with data parallelism only, so this is version 1. Megatron-Bridge switches dist and ddp "
        "together and turns average_in_collective off by itself"
    ),
    side_effects=(
        "an all-gather before each layer, forward and backward, and a reduce-scatter after: more to hide",
        (
            "before Blackwell, TP and CP want CUDA_DEVICE_MAX_CONNECTIONS=1, which it refuses: Megatron-LM "
            "advises against having both"
        ),
        "checkpoints of other formats cannot be loaded, nor its own elsewhere",
        "reuse of the gradient buffer for MXFP8 parameters goes off",
    ),
    excludes=("COM-5", "COM-13"),
    verify="allocated memory falls; an all-gather per layer lies under compute, and no layer waits for it",
    sources=(
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge, docs/training/megatron-fsdp.md, src/megatron/bridge/training/config.py at 067f987d",
        "Megatron-Bridge skill perf-megatron-fsdp",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)
