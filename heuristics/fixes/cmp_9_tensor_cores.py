"""CMP-9: FP32 GEMMs on tensor cores.

Changes what multiplies: FP32 matrices as TF32 or BF16 on tensor cores, in place of the SIMT units. Helps
where GEMMs run in plain FP32, PyTorch's default for matrices, on a GPU that has TF32. TF32 keeps FP32's range
and 10 bits of its mantissa; BF16 halves the bytes as well. Not for what must stay FP32, such as a router's
few GEMMs.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, holds
from heuristics.run.run import Run
from traces.measure.tensor_cores import TF32_SINCE


def change(run: Run) -> Change:
    """BF16, for Megatron trains in FP32 only where nothing is said."""
    del run
    return Change(megatron_lm={"bf16": True}, megatron_bridge={"mixed_precision": "bf16_mixed"})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Hardware with TF32, and a run that is not in BF16 already."""
    return (*already(run, "bf16", active=run.precision != "fp32"), *_hardware(run))


def _hardware(run: Run) -> tuple[Precondition, ...]:
    capability = run.active.capability
    fact = None if capability is None else capability >= TF32_SINCE
    return (holds("the GPU has TF32: compute capability 8.0 or newer", fact, told_by="--gpu-model"),)


FIX: Final = Fix(
    id="CMP-9",
    wall="compute",
    title="Run GEMMs on tensor cores: TF32 or BF16",
    kinds=("no_tensor_cores",),
    change=change,
    advice=advice,
    versions="every Megatron-Core release here",
    side_effects=(
        "TF32 keeps 10 bits of the mantissa, BF16 7: compare the loss with an FP32 run",
        "BF16 weights need FP32 master weights in the optimizer",
    ),
    verify="GEMM names with s1688gemm, tf32 or bf16 in place of sgemm and ffma; the loss as before",
    sources=(
        "PyTorch documentation, torch.set_float32_matmul_precision and torch.autocast",
        "NVIDIA Ampere architecture whitepaper, TF32",
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
    ),
    direct=("no_tensor_cores",),
    takes_away=True,
    any_program=True,
    pytorch=Form(
        title="Run GEMMs on tensor cores: TF32 or BF16",
        code=(
            'torch.set_float32_matmul_precision("high")',
            'or torch.autocast("cuda", dtype=torch.bfloat16)',
        ),
        verify="GEMM names with s1688gemm, tf32 or bf16 in place of sgemm and ffma; the loss as before",
        sources=("PyTorch documentation, torch.set_float32_matmul_precision and torch.autocast",),
        versions="set_float32_matmul_precision since PyTorch 1.12",
        side_effects=("TF32 keeps 10 bits of the mantissa, BF16 7: compare the loss with an FP32 run",),
        advice=_hardware,
    ),
)
