"""The table of a diagnosis."""

from __future__ import annotations

import diagnoser
from tests.by_hand.run import US, Run, written


def test_the_table_has_one_row_per_bucket_kind_and_class() -> None:
    """Window 100: gemm 40, sendrecv 30 of which 10 hidden, memcpy 20, an unknown kernel 10, idle 10."""
    run = Run()
    run.work("gemm", 0, 40)
    run.work("send_recv", 30, 60, stream=20)
    run.work("h2d", 60, 80)
    run.work("mystery<\x1b[31m|`x`>(int)", 90, 100)
    with written(run) as (path,):
        frame = diagnoser.analyze(path).to_frame()
    assert list(frame.columns) == ["trace", "process", "device", "group", "key", "ns", "frac"]
    assert {
        (group, key): (ns, frac)
        for group, key, ns, frac in zip(frame.group, frame.key, frame.ns // US, frame.frac, strict=True)
    } == {
        ("bucket", "compute"): (50, 0.5),
        ("bucket", "exposed_comm"): (20, 0.2),
        ("bucket", "exposed_copy"): (20, 0.2),
        ("bucket", "idle"): (10, 0.1),
        ("exposed_comm_kind", "sendrecv_unresolved"): (20, 0.2),
        ("exposed_copy_kind", "memcpy_h2d"): (20, 0.2),
        ("compute_class", "gemm"): (40, 0.4),
        ("compute_class", "other"): (10, 0.1),
    }
