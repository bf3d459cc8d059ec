"""NVTX ranges: PyTorch's own on a GPU, those of the package `nvtx` where PyTorch has no CUDA."""

import importlib
from typing import Any

from traces.errors import InputError
from traces.workload.megatron import INSTALL
from traces.workload.model import Ranges


def nvtx_ranges(torch: Any, device: str) -> Ranges:
    """What opens a range by its name; `InputError` where the package is absent.

    From 0.2.12 on the package asks whether a domain is wanted; nsys 2022.4 and 2023.4 answer no, and their
    recordings then hold no range and no error. So whoever records looks whether the ranges are there.
    """
    if device == "cuda":
        return torch.cuda.nvtx.range
    try:
        nvtx = importlib.import_module("nvtx")
    except ImportError:
        raise InputError(
            f"the Python package nvtx is not installed, so phases cannot be marked. Type {INSTALL}"
        ) from None
    return nvtx.annotate
