"""Where no side has steps: the same work that is 15 % longer, and launches of the same kernels, decide."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.comparison.comparison import compare
from tests.doubles.comparison import kernel, rank, result, row
from traces.sections.rank import Rank

MS = 1_000_000


def window(
    work_ms: float,
    *,
    wait_ms: int = 0,
    count: int = 10_000,
    std_ms: float = 0.0,
    other: int = 0,
    comm_ms: int = 0,
    **about: Any,
) -> Rank:
    """One window in which a kernel runs so often, and the host is late; `std_ms` of one launch; `other`
    kernels of another name take no time.
    """
    work_ns = round(work_ms * MS)
    one = kernel("solve", work_ns, count=count, key="compute.other", std_ns=round(std_ms * MS))
    kernels = (one, *[kernel("sort", 1, count=other, key="compute.other")] * bool(other))
    rows = (
        row("compute.other", work_ns, count=count, work_ns=work_ns),
        row("launch_starved.python", wait_ms * MS),
        row("exposed_comm.sendrecv_unresolved", comm_ms * MS),
    )
    return rank(*rows, kernels=kernels, source="none", **about)


def verdict(base: Rank, new: Rank) -> str:
    found, back = (compare(result(one), result(other)).verdict for one, other in ((base, new), (new, base)))
    turned = {"regression": "improvement", "improvement": "regression"}
    assert back == turned.get(found, found)
    return found


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (window(100, count=2), window(115, count=2), "regression"),  # more than one thing run twice
        (window(100, count=2), window(114.999_999, count=2), "undecided"),
        (window(100, count=2), window(100, count=2, wait_ms=200), "regression"),  # the host's too
        (window(100, count=2), window(100, count=2, comm_ms=200), "undecided"),  # another rank's, perhaps
        (window(100), window(106), "regression"),  # 10,000 launches that do not vary
        (window(100, std_ms=0.01), window(106, std_ms=0.01), "regression"),  # 1 ms a side: 2.8 of 6 ms
        (window(100, std_ms=0.03), window(106, std_ms=0.03), "undecided"),  # 8.4 of 6 ms
        (window(100), window(106, wait_ms=7), "undecided"),  # the host made most of it
        (window(100), window(106, wait_ms=6), "regression"),  # just half of it
        (window(100), window(104), "undecided"),  # as much as clocks move
        (window(100), window(100.5), "no_change"),
        (window(100), window(101), "no_change"),  # all of the 1 % that matters
        (window(89.8, wait_ms=10), window(90.3, wait_ms=10), "undecided"),  # one of 89.8 is not nine tenths
        (window(90, wait_ms=10), window(90.5, wait_ms=10), "no_change"),  # launches are nine tenths
        (window(100), window(106, other=50), "regression"),  # some run on one side alone
        (window(100, count=2), window(100, count=2, other=400), "not_comparable"),
        (window(100, count=2), window(150, count=2, absent_ns=None), "regression"),  # no account
        (window(100, std_ms=0.004), window(100.5, std_ms=0.004), "undecided"),  # 0.5 and 1.1 ms of 1
        (window(100, wait_ms=20), window(100.5, wait_ms=20), "undecided"),  # a sixth is not launches
        (window(100, count=7), window(106, count=7), "undecided"),  # too few to know how they vary
        (window(100, count=7, other=99), window(106, count=8, other=99), "undecided"),  # of one side
        (window(100, count=8), window(106, count=8), "regression"),
        (window(100, std_ms=0.04), window(106), "undecided"),  # 4 ms of one side alone: 7.8 of 6 ms
        (window(100), window(106, count=10_500), "not_comparable"),
    ],
)  # fmt: skip
def test_a_window_decides_by_half_or_by_how_its_launches_vary(base: Rank, new: Rank, expected: str) -> None:
    assert verdict(base, new) == expected


def several(*kernels: tuple[str, int, int]) -> Rank:
    """One window of kernels by name, ms in all and count."""
    made = tuple(kernel(name, ms * MS, count=count, key="compute.other") for name, ms, count in kernels)
    work_ns, count = sum(one.work_ns for one in made), sum(one.count for one in made)
    return rank(row("compute.other", work_ns, count=count), kernels=made, source="none")


def test_other_work_decides_nothing_however_long_it_takes() -> None:
    assert verdict(window(100, count=2), several(("sort", 900, 2))) == "not_comparable"


def test_less_than_a_twentieth_decides_where_not_all_kernels_are_longer_alike() -> None:
    base = several(("solve", 50, 5_000), ("sort", 50, 5_000))
    for ends, expected in (((52, 52), "undecided"), ((54, 50), "regression"), ((53, 51), "undecided")):
        new = several(("solve", ends[0], 5_000), ("sort", ends[1], 5_000))
        assert verdict(base, new) == expected, ends


def starting(work_ms: int, startup_ms: int) -> Rank:
    """Two kernels after start-up."""
    rows = row("compute.other", work_ms * MS, count=2), row("launch_starved.lazy_init", startup_ms * MS)
    one = kernel("solve", work_ms * MS, count=2, key="compute.other")
    absent = {"launch_starved": {"lazy_init": startup_ms * MS}}
    return rank(*rows, kernels=(one,), source="none", absent_ns=absent)


def test_start_up_is_no_part_of_what_is_by_half_longer() -> None:
    assert verdict(starting(100, 0), starting(100, 200)) == "undecided"
    assert verdict(starting(100, 200), starting(200, 0)) == "undecided"  # 300 -> 200, though the work doubles
    assert verdict(starting(100, 200), starting(300, 0)) == "undecided"  # 300 on both sides


def test_steps_that_decide_nothing_are_not_decided_by_half() -> None:
    sides = [rank(row("compute.other", *[10 * MS, most * MS] * 2, count=8),
        kernels=(kernel("solve", 100, count=8, key="compute.other"),)) for most in (300, 500)]  # fmt: skip
    assert verdict(*sides) == verdict(window(100, count=2), sides[0]) == "undecided"


def test_nothing_is_decided_where_no_witness_tells_of_the_same_work_or_others_do_half_of_it() -> None:
    base = several(("solve_1", 50, 2), ("sort_1", 50, 2))
    assert verdict(base, several(("solve_2", 150, 3), ("sort_2", 50, 1))) == "undecided"
    base = several(("solve", 50, 5_000), ("sort", 50, 5_000))
    assert verdict(base, several(("solve", 54, 5_000), ("merge", 50, 5_000))) == "undecided"
