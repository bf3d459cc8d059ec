"""CMP-7: the experts' two GEMMs, activation and quantisation as one fused operation.

Changes grouped GEMMs in MXFP8 on Blackwell to Transformer Engine's fused grouped MLP. Helps where activation
and quantising kernels stand between the experts' GEMMs. Needs MXFP8, grouped GEMM, a gated activation and
Blackwell. Gates and linear units are kept interleaved for it, so weights of other runs must be rearranged.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import already_so, at_least, evident, holds
from heuristics.run.run import Run
from traces.limits import Limit

INTERLEAVED: Final = Limit(32, "units", "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d")
CAPABILITY: Final = Limit(
    10, "compute capability, major", "Megatron-LM, megatron/core/transformer/transformer_config.py: SM100"
)


def knobs(run: Run) -> Knobs:
    """The op fuser and the order of units that its kernel wants."""
    del run
    units = int(INTERLEAVED.value)
    return Knobs(
        megatron_lm=("--use-transformer-engine-op-fuser", f"--moe-mlp-glu-interleave-size {units}"),
        megatron_bridge=(
            "model.use_transformer_engine_op_fuser=true",
            f"model.moe_mlp_glu_interleave_size={units}",
        ),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """What the fused kernel is made for."""
    capability = run.config.capability
    fused = run.config.te_op_fuser is True and run.config.on("moe_mlp_glu_interleave_size") is True
    return (
        *already_so("moe_mlp_glu_interleave_size", fused),
        holds("the model has experts", run.active.moe, "record a whole step"),
        evident(
            "the GPU is known to be Blackwell",
            capability is not None and capability[0] == CAPABILITY.value,
            "--gpu-model" if capability is None else "",
        ),
        evident(
            "the GEMMs are known to multiply in MXFP8",
            run.precision == "mxfp8",
            "--precision" if run.precision is None else "CMP-3",
        ),
        holds("experts run as grouped GEMM", run.active.grouped_gemm, "CMP-1"),
        holds(
            "the experts' activation is gated",
            run.config.on("gated_linear_unit"),
            "gated_linear_unit (swiglu) of the configuration",
        ),
        at_least("Megatron-Core", run.config.core_text, "0.18.0", "--core-version"),
    )


FIX: Final = Fix(
    id="CMP-7",
    wall="compute",
    title="Fuse the experts' GEMMs with their activation",
    kinds=("grouped_gemm", "elementwise"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "Megatron-Core 0.18 and later, experimental. On GPT-OSS it was slower in the 26.06 container, by its "
        "cudnn-frontend (notes of Megatron-Bridge 0.5.1)"
    ),
    gains=(),
    side_effects=(
        "weights are kept in another order: checkpoints of other runs must be rearranged",
        "grouped tensors come with the op fuser, which Megatron-FSDP does not take as single weights",
    ),
    excludes=(),
    verify="one fused kernel where GEMM, activation and quantising kernels stood; a shorter unprofiled step",
    sources=(
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    direct=(),  # shorter GEMMs leave as many SMs empty
)
