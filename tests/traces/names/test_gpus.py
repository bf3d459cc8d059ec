"""GPU products: what is published of each, and what a trace lacks of its GPU."""

from __future__ import annotations

import pytest

from diagnoser.options.given import given_from
from heuristics.config.hardware import FAMILIES
from traces.errors import UsageError
from traces.names.gpus import product_named, products


def test_every_family_of_the_guides_is_a_product() -> None:
    assert {*FAMILIES} <= {*products()}


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("gb200", "GB200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
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
