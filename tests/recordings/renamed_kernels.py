"""Kernels of a recording as another container or precision would name them; what they do stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from traces.names.kernels import classify_kernel, is_one_of_a_pass
from traces.sections.rank import Rank
from traces.sections.tables import Kernel


@dataclass(frozen=True)
class Change:
    """Names of kernels by class and subclass, and what becomes of the text of all others."""

    what: str
    names: Mapping[tuple[str, str], str]
    others: Callable[[str], str]

    def name(self, kernel: Kernel) -> str:
        found = classify_kernel(kernel.name)
        name = self.names.get((found.class_, found.subclass))
        if name is None or (found.class_ == "attention" and not is_one_of_a_pass(kernel.name)):
            return self.others(kernel.name)
        return f"{name}_{len(kernel.name)}"

    def __str__(self) -> str:
        return self.what


def _of_another_library(name: str) -> str:
    return name.replace("volta_", "ampere_").replace("ncclKernel_", "ncclDevKernel_")


def _in_bf16(name: str) -> str:
    narrow = re.sub(r"\bfloat\b", "c10::BFloat16", name)
    return narrow.replace("vectorized_elementwise_kernel<4", "vectorized_elementwise_kernel<8")


_FLASH: Final = {
    ("attention", "fwd"): "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
    ("attention", "bwd"): "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>",
}
_XMMA: Final = "sm80_xmma_{}_implicit_gemm_indexed_{}_f32_nhwckrsc_nhwc_tilesize128x128x16_cudnn"


def _convolutions(format_: str) -> dict[tuple[str, str], str]:
    names = {"wgrad": "wgrad", "dgrad": "dgrad", "conv": "fprop"}
    return {("convolution", one): _XMMA.format(word, format_) for one, word in names.items()}


CONTAINER: Final = Change(
    "another container",
    {
        ("gemm", "dense"): "cutlass_80_simt_sgemm_128x64_8x5_nt_align1",
        **_convolutions("f32f32_f32f32"),
        **_FLASH,
    },
    _of_another_library,
)
PRECISION: Final = Change(
    "another precision",
    {
        ("gemm", "dense"): "nvjet_sm90_tst_128x128_64x4_2x1_v_bz_TNT",
        **_convolutions("bf16bf16_bf16f32"),
        **_FLASH,
    },
    _in_bf16,
)


def with_kernels(rank: Rank, change: Change) -> Rank:
    rows = tuple(replace(one, name=change.name(one)) for one in rank.kernel_table.rows)
    return replace(rank, kernel_table=replace(rank.kernel_table, rows=rows))
