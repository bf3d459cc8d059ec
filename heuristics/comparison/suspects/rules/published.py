"""Regressions that were published, by the release that brought them and the rows that they move."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from heuristics.comparison.suspects.rules.rule import Rule, Signs
from heuristics.comparison.suspects.rules.signs import CLASSES, LAUNCHES
from heuristics.comparison.suspects.rules.versions import crossed
from heuristics.comparison.suspects.view import View
from heuristics.result.told import known

_NOTES: Final = "Megatron-Bridge v0.5.1 release notes, known issues"


def _on_gpu(names: tuple[str, ...], view: View) -> Signs:
    """Ruled out on another GPU than it was published for."""
    gpu = known(view.after.gpu)
    if gpu is None:
        return ()
    return (f"it was published for this GPU: {gpu}",) if any(name in gpu for name in names) else None


def on_gpu(*names: str) -> Callable[[View], Signs]:
    """A sign where the run's GPU is one of some."""
    return partial(_on_gpu, names)


def _tensor_parallel(view: View) -> Signs:
    _, size = view.known("tensor_model_parallel_size", "tp")
    if not isinstance(size, int):
        return ()
    return (f"tensor parallelism of {size}",) if size > 1 else None


SMALL_A2A: Final = Rule(
    id="nccl_small_a2a",
    title="NCCL 2.30 is slower in small all-to-all on GB300",
    mirrored="NCCL before 2.30 is faster in small all-to-all on GB300",
    slower=("exposed_comm.ep_*", "exposed_comm.sendrecv_unresolved"),
    seen=on_gpu("GB300"),
    said=("version.nccl",),
    says=crossed("2.30"),
    needs="said",
    next="run the new side with NCCL 2.29.7",
    source="NVIDIA/TensorRT-LLM pull request 17160: 2.30.4 against 2.29.7, GLM-5 NVFP4, 59.7 % of tokens",
)
SMALL_ALL_REDUCE: Final = Rule(
    id="nccl_small_all_reduce",
    title="NCCL 2.29 is slower in small all-reduce on H100",
    mirrored="NCCL before 2.29 is faster in small all-reduce on H100",
    slower=("exposed_comm.all_reduce", "exposed_comm.tp"),
    seen=on_gpu("H100", "H200"),
    said=("version.nccl",),
    says=crossed("2.29"),
    needs="said",
    next="run the new side with NCCL 2.28",
    source="NVIDIA/nccl issue 2094: 2.28 against 2.29.7",
)
TORCH_IMAGE: Final = Rule(
    id="container_with_tp",
    title="The newer base image is slower with tensor parallelism",
    mirrored="The older base image is faster with tensor parallelism",
    slower=("exposed_comm.*", *CLASSES, *LAUNCHES),
    seen=_tensor_parallel,
    said=("version.container", "container"),
    says=crossed("26.04", from_="26"),
    needs="said",
    at_most="medium",
    next="run the new side with TP 1 and HybridEP, or in the base's container",
    source=(
        "Megatron-Bridge, docs/releases/known-issues.md at 067f987d, 26.06: Moonlight and Nemotron 3 Nano, "
        "PyTorch image 26.02 to 26.04"
    ),
)
FUSED_KERNELS: Final = Rule(
    id="container_fused_gemms",
    title="The fused grouped GEMMs of container 26.06 are slower in MXFP8",
    mirrored="The fused grouped GEMMs outside container 26.06 are faster in MXFP8",
    slower=("compute.grouped_gemm", "compute.activation", "compute.quantize"),
    seen=on_gpu("GB200", "GB300"),
    said=("version.container", "container"),
    says=crossed("26.06", until="26.08"),
    needs="said",
    next="run the new side without use_transformer_engine_op_fuser, or in container 26.08",
    source=f"{_NOTES}: GPT-OSS on GB200 and GB300, cudnn-frontend issue 256",
)

RULES: Final = (SMALL_A2A, SMALL_ALL_REDUCE, TORCH_IMAGE, FUSED_KERNELS)
