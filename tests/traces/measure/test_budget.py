"""The partition of a window, by hand."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from traces.columns import NULL, Calls
from traces.intervals import spans
from traces.measure.budget import measure_budget, measure_totals
from traces.sections.rank import Totals
from traces.timeline import KEYS, Activities, Bucket, Source

# (bucket, key, stream, start, end)
Row = tuple[Bucket, str, int, int, int]


NO_LAUNCH = (0, -1, -1, NULL)  # row, name, call, launch
NO_CALLS = Calls(*(np.empty(0, dtype=np.int64) for _ in Calls.__slots__))


def activities(rows: list[Row]) -> Activities:
    ordered = sorted(enumerate(rows), key=lambda row: (row[1][3], row[1][2], row[0]))
    table = np.array(
        [
            (start, end, stream, bucket, KEYS[bucket].index(key), bucket == Bucket.COPY, *NO_LAUNCH)
            for _, (bucket, key, stream, start, end) in ordered
        ],
        dtype=np.int64,
    ).reshape(-1, 10)
    columns = dict(zip((one.name for one in fields(Activities)), table.T, strict=False))
    return Activities(**columns, calls=NO_CALLS)


def test_a_step_that_one_can_add_in_the_head() -> None:
    budget = measure_budget(
        activities(
            [
                (Bucket.COMPUTE, "gemm", 7, 0, 40),
                (Bucket.COMM, "ep_dispatch", 20, 30, 60),  # 10 hidden, 20 exposed
                (Bucket.COPY, "memcpy_d2h", 21, 50, 70),  # 10 under communication, 10 exposed
                (Bucket.COMPUTE, "norm", 7, 80, 100),  # 10 idle before
            ]
        ),
        spans((0, 100)),
    )
    assert (budget.compute_ns, budget.exposed_comm_ns, budget.exposed_copy_ns, budget.idle_ns) == (
        60,
        20,
        10,
        10,
    )
    assert budget.compute_by_class_ns == {"gemm": 40, "norm": 20}
    assert budget.hidden_comm_ns == 10


def test_of_two_kernels_at_once_the_first_gives_the_class_and_the_lower_stream_breaks_a_tie() -> None:
    both = [(Bucket.COMPUTE, "norm", 9, 0, 30), (Bucket.COMPUTE, "gemm", 7, 10, 50)]
    assert measure_budget(activities(both), spans((0, 50))).compute_by_class_ns == {"norm": 30, "gemm": 20}
    tie = [(Bucket.COMPUTE, "norm", 9, 0, 30), (Bucket.COMPUTE, "gemm", 7, 0, 10)]
    assert measure_budget(activities(tie), spans((0, 50))).compute_by_class_ns == {"gemm": 10, "norm": 20}


def test_totals_count_kernels_only_and_ignore_windows() -> None:
    totals = measure_totals(
        activities(
            [
                (Bucket.COMPUTE, "gemm", 7, 0, 40),
                (Bucket.COMM, "ep_dispatch", 20, 30, 60),
                (Bucket.COPY, "memcpy_d2h", 21, 50, 900),
                (Bucket.COMPUTE, "norm", 8, 20, 50),
            ]
        )
    )
    assert isinstance(totals, Totals)
    assert (totals.kernel_count, totals.kernel_work_ns, totals.span_ns) == (3, 100, 60)
    assert (totals.busy_union_ns, totals.comm_union_ns, totals.exposed_comm_ns) == (60, 30, 10)


def test_copies_alone_have_no_totals() -> None:
    assert measure_totals(activities([(Bucket.COPY, "memset", 7, 0, 5)])) is None
    assert int(Source.KERNEL) == 0  # the helper above writes kernels as source 0 and copies as 1
