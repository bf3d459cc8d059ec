"""A value that is not known: an error with its cure, which speaks of the profiler that made the file."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest

from traces.cures import cure, cures
from traces.missing import Missing, unless

UNKNOWN: Any = Missing("ranks[0].totals", "no kernels were recorded", "record with --trace=cuda")


def test_it_is_equal_to_its_like_alone() -> None:
    assert Missing(UNKNOWN.path, UNKNOWN.reason, UNKNOWN.cure) == UNKNOWN
    assert UNKNOWN != 0


def test_it_is_false_so_that_asking_for_a_value_asks_whether_there_is_one() -> None:
    assert not UNKNOWN
    assert (UNKNOWN or 5) == 5


def test_a_value_stands_unless_something_is_why_there_is_none() -> None:
    assert unless(None, 0) == 0
    assert unless(UNKNOWN, 0) is UNKNOWN


@pytest.mark.parametrize(
    "used",
    [
        operator.lt, operator.le, operator.gt, operator.ge, operator.add, operator.sub, operator.mul,
        operator.truediv, operator.floordiv, operator.mod, operator.pow,
    ],
)  # fmt: skip
def test_what_compares_it_or_computes_with_it_learns_why_and_the_cure(
    used: Callable[[Any, Any], object],
) -> None:
    with pytest.raises(TypeError, match=r"ranks\[0\]\.totals is not known: no kernels .* Cure: record with"):
        used(UNKNOWN, 1)


def test_it_is_so_on_the_right_side_and_for_sums() -> None:
    for used in (lambda: UNKNOWN > 1, lambda: sum([1, UNKNOWN]), lambda: 2 * UNKNOWN, lambda: float(UNKNOWN)):
        with pytest.raises(TypeError, match="is not known"):
            used()


OF_NSYS = re.compile(
    r"nsys (profile|export)|--(trace|cuda-(graph|event)-trace|cuda-memory|gpu-metrics)|export "
)


def test_every_cure_has_a_form_for_each_recorder() -> None:
    assert cures("nsys-sqlite").keys() == cures("kineto").keys()
    assert not [text for text in cures("kineto").values() if OF_NSYS.search(text)]
    assert cure("graphs", None) == cure("graphs", "nsys-report") == "record with --cuda-graph-trace=node"
    assert cure("host_waits", "kineto").startswith("record with enable_cuda_sync_events")
    of_others = [*cures("rocprof").values()]  # a format that somebody else reads
    assert not [text for text in of_others if OF_NSYS.search(text) or "torch." in text or "CUPTI" in text]
