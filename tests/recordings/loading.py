"""Recordings of a run that waits for its data, in milliseconds."""

from __future__ import annotations

from bench.simulate.recording import Recording

KERNEL = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn"
MS = 1_000_000


def loading(
    pause_ms: int, size_bytes: int = 1 << 20, equal: bool = True, pageable: bool = False
) -> Recording:
    """Four steps: a pause, an input copy of 1 ms, then 25 kernels of 1 ms, each launched as the last ends."""
    recording = Recording()
    recording.gpu()
    at = 0
    for step in range(4):
        start = at + pause_ms * MS
        size = size_bytes if equal else size_bytes + step
        recording.copy(
            "h2d",
            start,
            start + MS,
            size_bytes=size,
            pageable=pageable,
            launch_ns=start,
            launch_end_ns=start + MS,
        )
        at = start + MS
        for _ in range(25):
            recording.kernel(
                KERNEL, at, at + MS, grid=(132, 1, 1), launch_ns=at - 9_000, launch_end_ns=at - 5_000
            )
            at += MS
        recording.range(f"iteration {step}", start - pause_ms * MS, at)
    return recording
