"""NVTX ranges: PyTorch's own on a GPU, those of the package `nvtx` where PyTorch has no CUDA."""

import importlib
from typing import Any

from bench.workload.model import Ranges
from diagnoser.megatron import INSTALL
from traces.errors import InputError


def nvtx_ranges(torch: Any, device: str) -> Ranges:
    """What opens a range by its name; `InputError` where the package is absent.

    From 0.2.12 on the package asks whether a domain is wanted; nsys 2022.4 and 2023.4 answer no, and their
    recordings then hold no range and no error. So whoever records looks whether the ranges are there.
    """
    marks: Ranges
    if device == "cuda":
        marks = torch.cuda.nvtx.range
        return marks
    try:
        nvtx = importlib.import_module("nvtx")
    except ImportError:
        raise InputError(
            f"the Python package nvtx is not installed, so phases cannot be marked. Type {INSTALL}"
        ) from None
    marks = nvtx.annotate
    return marks
