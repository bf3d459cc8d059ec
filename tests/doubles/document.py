"""A run said in a few lines whose document has a wall, for the tests of formats."""

from __future__ import annotations

from bench.simulate.recording import Recording

US, MS = 1_000, 1_000_000
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
DISPATCH = "void deep_ep::intranode::dispatch<8, 768>(int4*, float*)"
HOSTILE = (
    "a|b`c`<script>alert(1)</script>\n# head\u202eturned\x1b[31m*x* _y_ [z](http://e.vil) @all #1 $q$ &lt;"
)


def exposed(*, comm: str = ALL_REDUCE, kernel: str = "vectorized_elementwise_kernel") -> Recording:
    """Four steps of 10 ms on a host that is ahead: 6 ms of GEMM, 3 of communication, 1 of another kernel."""
    recording = Recording()
    recording.gpu("NVIDIA H100 80GB HBM3")
    for step in range(4):
        start = (10 * step + 1) * MS
        host = 960 * US + step * 40 * US
        recording.range(f"iteration {step}", host, host + 40 * US)
        recording.range("megatron.core.transformer.module", host + 5 * US, host + 35 * US)
        recording.kernel(GEMM, start, start + 6 * MS, launch_ns=host + 10 * US, grid=(132, 1, 1))
        recording.kernel(comm, start + 6 * MS, start + 9 * MS, launch_ns=host + 20 * US)
        recording.kernel(kernel, start + 9 * MS, start + 10 * MS, launch_ns=host + 30 * US, grid=(528, 1, 1))
    return recording


def graph_only() -> Recording:
    """One replay recorded whole, so that communication cannot be told."""
    recording = Recording()
    recording.graph_replay(100, 190, launch_ns=90)
    recording.memset(190, 200, size_bytes=4)
    return recording
