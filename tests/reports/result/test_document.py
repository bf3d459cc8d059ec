"""The table of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import diagnoser
from bench.simulate.recording import Recording

Export = Callable[..., Path]
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def small() -> Recording:
    """Window 100: gemm 40, sendrecv 30 of which 10 hidden, memcpy 20, an unknown kernel 10, idle 10."""
    recording = Recording()
    recording.gpu("NVIDIA H100 80GB HBM3")
    recording.kernel("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", 1_000, 1_040, launch_ns=900)
    recording.kernel(SENDRECV, 1_030, 1_060, launch_ns=910, stream=20)
    recording.copy("h2d", 1_060, 1_080, size_bytes=64, launch_ns=920)
    recording.kernel("mystery<\x1b[31m|`x`>(int)", 1_090, 1_100, launch_ns=930)
    return recording


def test_the_table_has_one_row_per_bucket_kind_and_class(export: Export) -> None:
    frame = diagnoser.analyze(export(small())).to_frame()
    assert list(frame.columns) == ["trace", "process", "device", "group", "key", "ns", "frac"]
    rows = {(row.group, row.key): (row.ns, row.frac) for row in frame.itertuples()}
    assert rows == {
        ("bucket", "compute"): (50, 0.5),
        ("bucket", "exposed_comm"): (20, 0.2),
        ("bucket", "exposed_copy"): (20, 0.2),
        ("bucket", "idle"): (10, 0.1),
        ("exposed_comm_kind", "sendrecv_unresolved"): (20, 0.2),
        ("exposed_copy_kind", "memcpy_h2d"): (20, 0.2),
        ("compute_class", "gemm"): (40, 0.4),
        ("compute_class", "other"): (10, 0.1),
    }
