"""COM-5: tensor-parallel all-gather and reduce-scatter in pieces beside the GEMMs that need or make them.

Changes NCCL collectives of tensor parallelism into Transformer Engine's user buffers. Helps where they are
exposed and TP cannot go down, which would be the simpler cure. Forbidden without sequence parallelism:
Megatron-LM asserts, Megatron-Bridge switches it off with a warning. Buffers are registered once, so
activations must not change size between steps or layers.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not
from heuristics.run.run import Run


def change(run: Run) -> Change:
    """The overlap with sequence parallelism, and one hardware queue where the GPU is older than Blackwell."""
    queues = {} if run.config.before_blackwell() is False else {"env.CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    return Change({"tp_comm_overlap": True, "sequence_parallel": True, **queues})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Tensor parallelism that is not overlapped yet, Transformer Engine, and sizes that stay."""
    return (
        is_not(
            "no tensor-parallel overlap is active yet",
            run.active.tp_overlap,
            told_by="tp_comm_overlap of the configuration",
        ),
        holds("layers are cut across ranks (TP above 1)", run.config.tensor_parallel, told_by="--tp"),
        holds("Transformer Engine is used", _engine(run), told_by="--te-version"),
        is_not(
            "activations keep their size between steps and layers",
            run.config.on("variable_seq_lengths"),
            told_by="variable_seq_lengths of the configuration",
        ),
    )


def _engine(run: Run) -> bool | None:
    implementation = run.config.first("transformer_impl")
    if implementation is not None:
        return implementation == "transformer_engine"
    return True if run.config.version_text("te") else None


FIX: Final = Fix(
    id="COM-5",
    wall="communication",
    title="Overlap tensor-parallel communication with GEMMs",
    kinds=("tp",),
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; Megatron-Bridge takes buffer settings in "
        "comm_overlap.tp_comm_overlap_cfg"
    ),
    side_effects=(
        "before Blackwell it wants CUDA_DEVICE_MAX_CONNECTIONS=1, overlap of expert all-to-all wants more",
        "its communication takes SMs, 16 by default",
    ),
    excludes=("MEM-10", "COM-13"),
    verify="user-buffer kernels run beside GEMMs, NCCL collectives of tensor parallelism are gone",
    sources=(
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py at 067f987d",
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
    ),
)
