"""Small random runs as PyTorch's profiler tells them: operators with shapes, functions, groups, memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.kept.trainings import ATTENTION_BACKWARD, EMBEDDING, GRADIENT, TRITON
from tests.recordings.kineto import PID, Event, call, event, on_gpu, write
from tests.recordings.launches import ADAM, ATTENTION, FILL, GATHER, GEMM, GROUPED, NORM, PERMUTE, SENDRECV

BF16, FP32, LONG = "c10::BFloat16", "float", "long int"
SPLIT: Final = "void cublasLt::splitKreduce_kernel<32, 16, int, float>(float*)"
WIDE: Final = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8"
CONVOLUTION: Final = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
ELEMENTWISE: Final = "void at::native::elementwise_kernel<128, 4, AddFunctor>"
FUNCTIONS: Final = (
    "torch/utils/checkpoint.py(512): unpack_hook", "train.py(10): loop", "nn.Module: MoELayer_3",
    "torch/utils/data/dataloader.py(700): __next__", "<built-in method synchronize>", "gc.py(1): collect",
    "megatron/core/transformer/moe/token_dispatcher.py(300): token_dispatch", "torch/optim/adam.py(5): step",
    "nn.Module: SelfAttention_0", "autograd/function.py(300): backward",
)  # fmt: skip
COLLECTIVES: Final = (
    ("allreduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    ("all_to_allv", SENDRECV), ("_allgather_base", GATHER), ("send", SENDRECV), ("all_to_all", SENDRECV),
    ("_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs)"),
    ("broadcast", "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
)  # fmt: skip
GROUPS: Final = (
    ("EXPERT_MODEL_PARALLEL_GROUP", "[0, 1, 2, 3]", 4), ("DATA_PARALLEL_GROUP", "[0, 2]", 2),
    ("mesh_pp", "", 2), ("undefined", "[0, 1, ..., 63]", 64), ("TENSOR_MODEL_PARALLEL_GROUP", "[0]", 1),
)  # fmt: skip
COPIES: Final = ("HtoD (Pinned -> Device)", "HtoD (Pageable -> Device)", "DtoH (Device -> Pinned)")
GPUS: Final[tuple[dict[str, object], ...]] = (
    {"name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132},
    {"name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108},
    {"name": "NVIDIA B200", "computeMajor": 10, "computeMinor": 0, "numSms": 148}, {},
)  # fmt: skip


Operator = tuple[str, Sequence[object], Sequence[str], tuple[str, ...]]
"""Its name, the shapes and values of its arguments, and its kernels."""


class _Profile:
    """A thread with operators, each with a kernel or a few, and at times another for backward."""

    def __init__(self, dice: Random) -> None:
        self.dice, self.events, self.now, self.number = dice, list[Event](), 0, 0
        self.thread, self.forks = PID, dice.random() < 0.6
        self.dims = [dice.choice((1, 8, 64, 500, 4_096)) for _ in range(4)]
        self.ops = [self.operator() for _ in range(dice.randint(2, 7))]

    def operator(self) -> Operator:
        """One of those that count, or that do not."""
        m, k, n, b = self.dims
        products = self.dice.choice(((GEMM,), (GEMM, SPLIT), (SPLIT, GEMM), (WIDE,), (GRADIENT, FILL)))
        heads = [b, 8, m, 64]
        return self.dice.choice(
            (
                ("aten::mm", [[m, k], [k, n]], [], products),
                ("aten::addmm", [[n], [m, k], [k, n], [], []], [], products),
                ("aten::bmm", [[b, m, k], [b, k, n]], [], (*products, ELEMENTWISE)),
                ("aten::linear", [[b, m, k], [n, k], []], [], products),
                ("aten::add", [[m, k], [m, k]], [], (ELEMENTWISE,)),
                ("aten::_grouped_mm", [[m, k], [b, k, n]], [], (GROUPED,)),
                ("my::fused", [[m, k]], [], (TRITON[0], TRITON[2])),
                ("aten::embedding", [[n, k], [b]], [], (EMBEDDING,)),
                ("aten::layer_norm", [[m, k]], [], (NORM,)),
                (
                    "aten::_scaled_dot_product_flash_attention",
                    [heads, heads, heads, [], [], [], []],
                    ["", "", "", "0.", self.dice.choice(("True", "False")), "False", ""],
                    (ATTENTION,),
                ),
                (
                    "aten::_scaled_dot_product_flash_attention_backward",
                    [heads] * 5 + [[], [], [], [], [], [], [], [], []],
                    ["", *[""] * 10, self.dice.choice(("True", "False")), "", "", ""],
                    (ATTENTION_BACKWARD,),
                ),
                (
                    "aten::convolution",
                    [[b, 16, 32, 32], [16, 16, 3, 3], [], [], [], [], [], [], []],
                    ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
                    (CONVOLUTION,),
                ),
            )
        )

    def step(self, number: int) -> None:
        dice, begin = self.dice, self.now
        for place, (name, dims, values, kernels) in enumerate(self.ops * dice.choice((1, 2))):
            self.thread = PID + 1 if self.forks and place % 3 == 2 else PID
            start = self.now
            self.launch(kernels)
            args: dict[str, object] = {"Input Dims": dims, "Concrete Inputs": values or [""] * len(dims)}
            args["Input type"] = [dice.choice((BF16, BF16, BF16, FP32))] * len(dims)
            self.spans("cpu_op", name, start, args=args)
            if dice.random() < 0.3:
                self.spans("python_function", dice.choice(FUNCTIONS), start - 1)
            if dice.random() < 0.2:
                self.spans("user_annotation", dice.choice(("moe_dispatch", "backward", "forward")), start - 1)
            if dice.random() < 0.4:
                self.collective()
            if dice.random() < 0.2:
                self.copy()
        self.thread = PID
        self.launch((PERMUTE, ADAM))
        self.memory()
        self.spans("user_annotation", f"ProfilerStep#{number}", begin - 2)

    def spans(self, category: str, name: str, start: int, **more: Any) -> None:
        self.events.append(event(category, name, start, self.now - start + 2, **more) | {"tid": self.thread})
        self.now += 4

    def launch(self, kernels: tuple[str, ...], stream: int = 7, **about: object) -> None:
        dice = self.dice
        for name in kernels:
            self.number += 1
            begin, blocks = self.now, dice.choice((1, 24, 132, 264, 1_000))
            self.events.append(call("cudaLaunchKernel", begin, 3, self.number) | {"tid": self.thread})
            grid: dict[str, object] = {"grid": [blocks, 1, 1], "block": [dice.choice((64, 128, 384)), 1, 1]}
            grid |= {"registers per thread": dice.choice((32, 128, 255))}
            grid |= {"shared memory": dice.choice((0, 65_536))}
            took = dice.choice((4, 20, 20, 90))
            told = about | (grid if dice.random() < 0.9 else {})
            self.events.append(on_gpu("kernel", name, begin + 5, took, self.number, stream=stream, **told))
            self.now += dice.choice((4, took + 6))

    def collective(self) -> None:
        said, name = self.dice.choice(COLLECTIVES)
        description, members, size = self.dice.choice(GROUPS)
        about: dict[str, object] = {
            "Collective name": said,
            "Process Group Name": str(size),
            "Process Group Ranks": members,
        }
        about |= {"Process Group Description": description, "Group size": size, "dtype": "BFloat16"}
        about |= {"In msg nelems": self.dice.choice((1, 4_096, 1 << 22)), "Seq": self.number}
        self.launch((name,), 20, **about)

    def copy(self) -> None:
        self.number += 1
        kind = self.dice.choice(
            ("HtoD (Pinned -> Device)", "HtoD (Pageable -> Device)", "DtoH (Device -> Pinned)")
        )
        size = self.dice.choice((4, 256, 1 << 20, 5 << 20))
        self.events.append(call("cudaMemcpyAsync", self.now, 3, self.number) | {"tid": self.thread})
        took = 2 + size // 40_000
        copied = on_gpu("gpu_memcpy", f"Memcpy {kind}", self.now + 5, took, self.number, bytes=size)
        self.events.append(copied)
        self.now += self.dice.choice((5, took + 8))
        if self.dice.random() < 0.4:
            self.events.append(call("cudaStreamSynchronize", self.now, took, self.number + 90_000))
            self.now += took + 3

    def memory(self) -> None:
        if self.dice.random() < 0.5:
            args = {"Device Type": 1, "Device Id": 0, "Total Reserved": self.dice.choice((1, 40, 79)) << 30}
            args |= {"Total Allocated": 1 << 30, "Bytes": 512, "Addr": 4_096}
            self.events.append(event("cpu_instant_event", "[memory]", self.now, 0, args=args) | {"ph": "i"})


def draw_profile(seed: int, path: Path) -> None:
    """Write one to four steps."""
    dice = Random(f"profile {seed}")
    profile, gpu = _Profile(dice), dice.choice(GPUS)
    for number in range(dice.choice((1, 2, 4))):
        profile.step(number)
    told: dict[str, Any] = {"deviceProperties": [{"id": 0, **gpu}]} if gpu else {}
    if seed % 3:
        told["distributedInfo"] = {"backend": "nccl", "rank": seed % 4, "world_size": 4}
    write(path, profile.events, **told)
