"""Kernels written to stay on the SM: one block per SM takes tile after tile, so their grid says little."""

import re
from typing import Final

_WRITTEN_SO: Final = re.compile(
    r"nvjet"  # cuBLAS from Hopper on
    r"|cutlass3x_sm|deep_gemm::sm\d+_\w*gemm"  # CUTLASS GEMMs with TMA, and DeepGEMM's
    r"|cutlass::device_kernel<(?!flash::\S*(?:process|Combine))"  # CUTLASS 3: GEMMs and FlashAttention 3
)


def may_be_persistent(name: str) -> bool:
    """Whether a kernel's name is of a family that launches one block per SM.

    Whether it did, its grid tells. Grouped GEMMs, known by their class, are another such family.
    """
    return _WRITTEN_SO.search(name) is not None
