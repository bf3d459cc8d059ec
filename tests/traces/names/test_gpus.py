"""GPU products: what is published of each, and what a trace lacks of its GPU."""

from __future__ import annotations

import pytest

from diagnoser.options.given import given_from
from traces.errors import UsageError
from traces.names.gpus import product_named


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("gb200", "GB200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("Tesla V100-DGXS-32GB", "V100"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("h100sxm", "H100"),
        ("H100-PCIe", "H100 PCIe"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("AMD Instinct MI250X / MI250", "MI250X"),
        ("NVIDIA GeForce RTX3090", "RTX 3090"),
        ("GeForce RTX 2080Ti", "RTX 2080 Ti"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA A1000", None),
        ("foo9000", None),
    ],
)
def test_a_product_is_found_in_its_name(name: str, product: str | None) -> None:
    found = product_named(name)
    assert (found.name if found else None) == product


def test_w2_a_gpu_that_is_not_known_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'h10' is no GPU that we know\. Did you mean H100"):
        given_from({"gpu": "h10"})
    assert given_from({"gpu": "NVIDIA H100 80GB HBM3"}).gpu == "H100"
