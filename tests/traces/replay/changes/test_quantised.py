"""A norm or an activation is fused with the quantisations that follow it at once, and with nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from traces.replay.changes import launches


@pytest.mark.parametrize(
    ("kernels", "runs"),
    [
        ("norm quantize quantize gemm", [[10, 11, 12]]),
        ("activation gemm quantize", []),
        ("gemm quantize", []),
        ("norm norm quantize activation quantize", [[11, 12], [13, 14]]),
        ("quantize norm", []),
    ],
)
def test_quantisations_join_the_norm_or_activation_right_before_them(
    kernels: str, runs: list[list[int]]
) -> None:
    classes = {place: SimpleNamespace(class_=name) for place, name in enumerate(kernels.split(), 10)}
    recorded: Any = SimpleNamespace(classes=classes)
    assert list(launches._quantised(recorded, list(classes))) == runs
