"""CMP-9: FP32 matrix work on tensor cores.

Changes what multiplies: FP32 matrices as TF32 or BF16 on tensor cores, in place of the SIMT units. Helps
where GEMMs run in plain FP32, PyTorch's default for matrices, on a GPU that has TF32. TF32 keeps FP32's range
and 10 bits of its mantissa; BF16 halves the bytes as well. Not for what must stay FP32, such as a router's
few GEMMs.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, holds
from heuristics.run.run import Run
from traces.measure.tensor_cores import HALF_SINCE, TF32_SINCE

CODE: Final = (
    'with torch.autocast("cuda", dtype=torch.bfloat16): forward and loss',
    "(before capability 8.0, as V100 and T4: dtype=torch.float16, with torch.amp.GradScaler)",
    'or, from 8.0 on, torch.set_float32_matmul_precision("high") (TF32)',
)


def change(run: Run) -> Change:
    """BF16, for Megatron trains in FP32 only where nothing is said."""
    del run
    return Change(megatron_lm={"bf16": True}, megatron_bridge={"mixed_precision": "bf16_mixed"})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Hardware with TF32, and a run that is not in BF16 already."""
    return (*already(run, "bf16", active=run.precision != "fp32"), _since(run, TF32_SINCE, None))


def _hardware(run: Run) -> tuple[Precondition, ...]:
    """Hardware that multiplies 16 bits on tensor cores, and matrix work that is wider."""
    share = run.active.wide_frac
    wide = None if share is None else share > 0
    return (
        _since(run, HALF_SINCE, run.active.tensor_cores),
        holds("matrix work runs in FP32 or TF32", wide, told_by="record a whole step"),
    )


def _since(run: Run, since: tuple[int, int], seen: bool | None) -> Precondition:
    """Tensor cores by the GPU's compute capability, else as its kernels show."""
    capability = run.active.capability
    fact = seen if capability is None else capability >= since
    text = f"the GPU has tensor cores: compute capability {since[0]}.{since[1]} or newer"
    return holds(text, fact, told_by="--gpu-model")


FIX: Final = Fix(
    id="CMP-9",
    wall="compute",
    title="Run matrix work on tensor cores: BF16, or TF32",
    kinds=("no_tensor_cores", "low_precision_unused"),
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
    direct=("no_tensor_cores", "low_precision_unused"),
    takes_away=True,
    any_program=True,
    pytorch=Form(
        title="Run matrix work on tensor cores: BF16, or TF32",
        code=CODE,
        verify="GEMM names with s1688gemm, tf32 or bf16 in place of sgemm and ffma; the loss as before",
        sources=("PyTorch documentation, torch.set_float32_matmul_precision and torch.autocast",),
        versions="set_float32_matmul_precision since PyTorch 1.12",
        side_effects=("TF32 keeps 10 bits of the mantissa, BF16 7: compare the loss with an FP32 run",),
        advice=_hardware,
    ),
)
