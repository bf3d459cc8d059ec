"""Lines and table of what one side does by other kernels."""

from __future__ import annotations

from msgspec.structs import replace

from heuristics.result.compared import Compared, Exchange, Exchanges, ExchangeSum, Worked
from reports.content.comparison.exchanged import exchange_table, exchanged
from reports.content.names import plain
from tests.doubles.comparison_document import MS, regression

NONE = ExchangeSum(0, 0, 0, 0)
ATTENTION = Exchange(
    "exchanged", "compute.attention", "forward",
    (
        Worked("fmha_cutlassF_f32", "compute.attention", 32, 23 * MS),
        Worked("softmax_warp", "compute.softmax", 32, 9 * MS),
    ),
    (Worked("flash_fwd_kernel", "compute.attention", 32, 7 * MS),),
    64, 32, 32 * MS, 7 * MS, -25 * MS,
)  # fmt: skip
COPIES = Exchange(
    "fewer", "copy.memcpy_d2d", None,
    (Worked("copy.memcpy_d2d", "copy.memcpy_d2d", 59, 6 * MS),),
    (Worked("copy.memcpy_d2d", "copy.memcpy_d2d", 35, 4 * MS),),
    59, 35, 6 * MS, 4 * MS, -2 * MS,
)  # fmt: skip
"""A step of 40 ms: 25 ms and 2 ms of it."""
SMALL = replace(COPIES, delta_ns=-MS // 10)


def with_rows(*rows: Exchange) -> Compared:
    return replace(regression(), exchanged=Exchanges(rows, NONE, 0, NONE))


def lines(*rows: Exchange) -> list[str]:
    return [plain(one.said) for one in exchanged(with_rows(*rows))]


def test_kernels_that_stand_for_others_are_said_with_the_work_of_both() -> None:
    assert lines(ATTENTION) == [
        "attention, forward: fmha_cutlassF_f32 + softmax_warp 32.0 ms -> flash_fwd_kernel 7.00 ms."
    ]


def test_what_is_small_beside_a_step_is_in_the_table_alone() -> None:
    assert lines(SMALL) == []
    assert len(exchange_table(with_rows(SMALL)).rows) == 1
