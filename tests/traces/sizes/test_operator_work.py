"""FLOP and least bytes of operators, by shapes that add up in the head; nothing where a shape is not told."""

from __future__ import annotations

import pytest

from traces.problems import Problem
from traces.sizes.operator_work import operator_work

BF16 = "c10::BFloat16"
Shapes = tuple[tuple[int, ...] | None, ...]


def flop_and_bytes(
    operator: str, shapes: Shapes, values: tuple[str, ...] = (), kind: str = BF16
) -> tuple[int, int] | None:
    types = tuple(kind if shape else "" for shape in shapes)
    found = operator_work(Problem(operator, shapes, types, values or ("",) * len(shapes)))
    return None if found is None else (found.flop, found.bytes_at_least)


def test_a_matrix_product_is_two_operations_for_each_pair() -> None:
    assert flop_and_bytes("aten::mm", ((10, 20), (20, 5))) == (2_000, 2 * (200 + 100 + 50))
    assert flop_and_bytes("aten::addmm", ((5,), (10, 20), (20, 5))) == (2_000, 700)
    assert flop_and_bytes("aten::linear", ((2, 5, 20), (5, 20), None)) == (2_000, 700)
    assert flop_and_bytes("aten::bmm", ((3, 10, 20), (3, 20, 5))) == (6_000, 2_100)


def test_attention_counts_the_pairs_under_its_mask_alone() -> None:
    """Two heads of four tokens of ten: 16 pairs, 10 under a causal mask, each over twice ten."""
    heads, name = (1, 2, 4, 10), "aten::_scaled_dot_product_flash_attention"
    whole = flop_and_bytes(name, (heads,) * 3 + ((),) * 2, ("",) * 4 + ("False",))
    assert whole == (2 * 2 * 16 * 20, 4 * 80 * 2)
    assert flop_and_bytes(name, (heads,) * 3 + ((),) * 2, ("",) * 4 + ("True",)) == (2 * 2 * 10 * 20, 640)
    back = f"{name}_backward"
    shapes, values = (heads,) * 5 + ((),) * 7, ("",) * 11 + ("False",)
    assert flop_and_bytes(back, shapes, values) == (2 * 2 * 16 * 50, 1_280)


def test_attention_whose_mask_is_not_told_is_not_counted() -> None:
    name = "aten::_scaled_dot_product_flash_attention"
    assert flop_and_bytes(name, ((1, 2, 4, 10),) * 3 + ((),) * 2) is None


def test_a_convolution_counts_each_output_over_its_filter() -> None:
    """Ten by ten, a filter of three, stride two, one of padding: five by five outputs of 8 channels."""
    shapes: Shapes = ((1, 4, 10, 10), (8, 4, 3, 3), None, (), (), (), (), (), ())
    values = ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")
    assert flop_and_bytes("aten::convolution", shapes, values) == (14_400, 2 * (400 + 288 + 200))
    shapes = ((1, 8, 5, 5), (1, 4, 10, 10), (8, 4, 3, 3), *((),) * 8)
    masked = ("",) * 3 + ("[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]")
    both = flop_and_bytes("aten::convolution_backward", shapes, masked)
    assert both == (28_800, 2 * (2 * 200 + 2 * (400 + 288)))


@pytest.mark.parametrize(
    ("operator", "shapes", "values"),
    [
        ("aten::mm", ((10, 20), (30, 5)), ()),
        ("aten::mm", ((10, 20), None), ()),
        ("aten::mm", ((10, 20),), ()),
        ("aten::bmm", ((3, 10, 20), (4, 20, 5)), ()),
        ("aten::relu", ((10, 20),), ()),
        ("aten::convolution", ((1, 4, 9, 9), (8, 4, 3, 3), None, *((),) * 6), ()),
        (
            "aten::convolution",
            ((1, 4, 9, 9), (8, 4, 3, 3), None, *((),) * 6),
            ("", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
        ),
    ],
)
def test_what_no_shape_tells_is_not_guessed(operator: str, shapes: Shapes, values: tuple[str, ...]) -> None:
    assert flop_and_bytes(operator, shapes, values) is None


def test_a_format_that_is_not_known_is_not_counted() -> None:
    assert flop_and_bytes("aten::mm", ((10, 20), (20, 5)), kind="c10::complex<float>") is None
