"""CMP-7: the experts' two GEMMs, activation and quantisation as one fused operation.

Changes grouped GEMMs in MXFP8 on Blackwell to Transformer Engine's fused grouped MLP. Helps where activation
and quantising kernels stand between the experts' GEMMs. Needs MXFP8, grouped GEMM, a gated activation and
Blackwell. Gates and linear units are kept interleaved for it, so weights of other runs must be rearranged.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already_so, grouped_gemm, holds, moe_layers
from heuristics.run.run import Run
from traces.limits import Limit

INTERLEAVED: Final = Limit(32, "units", "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d")
CAPABILITY: Final = Limit(
    10, "compute capability, major", "Megatron-LM, megatron/core/transformer/transformer_config.py: SM100"
)
_INTERLEAVE: Final = "moe_mlp_glu_interleave_size"


def change(run: Run) -> Change:
    """The op fuser and the order of units that its kernel wants."""
    del run
    return Change({"use_transformer_engine_op_fuser": True, _INTERLEAVE: int(INTERLEAVED.value)})


def advice(run: Run) -> tuple[Precondition, ...]:
    """What the fused kernel is made for."""
    capability = run.config.capability
    fused = run.config.te_op_fuser is True and run.config.on(_INTERLEAVE) is True
    return (
        *already_so(_INTERLEAVE, fused),
        moe_layers(run),
        holds(
            "the GPU is Blackwell",
            None if capability is None else capability[0] == CAPABILITY.value,
            told_by="--gpu-model",
            blocks=True,
        ),
        holds(
            "the GEMMs run in MXFP8",
            None if run.precision is None else run.precision == "mxfp8",
            "CMP-3",
            "--precision",
            blocks=True,
        ),
        grouped_gemm(run),
        holds(
            "the experts' activation is gated",
            run.config.on("gated_linear_unit"),
            told_by="gated_linear_unit (swiglu) of the configuration",
        ),
    )


FIX: Final = Fix(
    id="CMP-7",
    wall="compute",
    title="Fuse the experts' GEMMs with their activation",
    kinds=("grouped_gemm", "elementwise"),
    change=change,
    advice=advice,
    versions=(
        "Megatron-Core 0.18 and later, experimental. On GPT-OSS it was slower in the 26.06 container, by its "
        "cudnn-frontend (notes of Megatron-Bridge 0.5.1)"
    ),
    side_effects=(
        "weights are kept in another order: checkpoints of other runs must be rearranged",
        "grouped tensors come with the op fuser, which Megatron-FSDP does not take as single weights",
    ),
    verify="one fused kernel where GEMM, activation and quantising kernels stood; a shorter unprofiled step",
    sources=(
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    direct=(),  # shorter GEMMs leave as many SMs empty
)
