"""Recordings made up at random that could have been: threads call in order, streams work in order."""

from __future__ import annotations

import random
from typing import Any, Final

from hypothesis import strategies as st

from bench.simulate.recording import Recording, Row

US: Final = 1_000

KERNELS: Final = {
    "gemm": "nvjet_tst_128x256_64x4_2x1_v_bz_TNT",
    "attention": "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (bool)1>>(Flash_fwd_params)",
    "backward": "void flash::flash_bwd_dq_kernel<Flash_bwd_kernel_traits<(int)128, (bool)0>>(Flash_params)",
    "softmax": "void <unnamed>::softmax_warp_forward<float, (int)9, (bool)0>(T1 *, const T1 *, int)",
    "adam": "void at::native::<unnamed>::multi_tensor_apply_kernel<TensorListMetadata<(int)4>, Adam>(T1)",
    "unknown": "void mystery::work<(int)3, (bool)1, (unsigned int)5>(T1 *)",
    "permute": "_permute_kernel",
    "unpermute": "_unpermute_kernel",
    "sendrecv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "dispatch": "void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(T1 *)",
}
OPERATIONS: Final = (*KERNELS, "d2h", "h2d", "p2p", "memset", "sync", "event", "graph", "range")
LIBRARY: Final = 1
"""Domain of NCCL's own ranges."""

operation = st.tuples(
    st.sampled_from(OPERATIONS),
    st.integers(0, 1),  # thread
    st.integers(0, 2),  # stream
    st.integers(1, 30),  # of the host between two calls, µs
    st.integers(1, 60),  # of the work, µs
)
program = st.lists(operation, min_size=1, max_size=14)
seeds = st.integers(0, 1 << 16)


class Teller:
    """Makes up a process that could have been: threads call in order, streams work in order."""

    def __init__(self, recording: Recording, pid: int, device: int, seed: int) -> None:
        self.recording, self.pid, self.device = recording, pid, device
        self.random = random.Random(seed)
        self.jitter = seed % 2  # without, much falls together
        self.host_ns = 1_000 * US
        self.free_ns = dict.fromkeys((7, 13, 20), 0)

    def step(self, operations: list[Any], name: str | None) -> None:
        begin_ns = self.host_ns
        for what, thread, stream, after, length in operations:
            # half of them with odd nanoseconds, the others where much begins and ends at once
            self.host_ns += after * US + self.jitter * self.random.randrange(1, 900)
            self.tell(what, self.pid + thread, (7, 13, 20)[stream], length)
        if name is not None:
            self.recording.range(name, begin_ns, self.host_ns, pid=self.pid)
        self.host_ns += 5 * US

    def tell(self, what: str, tid: int, stream: int, length: int) -> None:
        if what in ("sync", "event"):
            self.mark(what, tid, stream)
            return
        if what == "range":
            self.recording.range(
                "gc generation 2", self.host_ns - 400, self.host_ns - 100, pid=self.pid, tid=tid
            )
            return
        launch_ns = self.host_ns
        self.host_ns += 3 * US + self.jitter * self.random.randrange(500)
        where: Any = {"pid": self.pid, "tid": tid, "device": self.device, "stream": stream}
        where |= {"launch_ns": launch_ns, "launch_end_ns": self.host_ns}
        start_ns, end_ns = self.work(stream, length)
        if what in KERNELS:
            grid = (self.random.choice((4, 132, 4096)), 1, 1)
            if what == "sendrecv":
                self.recording.range(
                    "ncclSend", launch_ns - 90, launch_ns - 80, registered=True, domain=LIBRARY, pid=self.pid
                )
            self.recording.kernel(KERNELS[what], start_ns, end_ns, grid=grid, **where)
        elif what == "memset":
            self.recording.memset(start_ns, end_ns, size_bytes=64, **where)
        elif what == "graph":
            node: Any = {**where, "api": "cudaGraphLaunch_v10000", "graph_node_id": 1}
            number = self.recording.kernel(KERNELS["gemm"], start_ns, end_ns, **node)
            start_ns, end_ns = self.work(stream, length)
            again: Any = {**node, "graph_node_id": 2, "launch_ns": None, "correlation_id": number}
            self.recording.kernel(KERNELS["softmax"], start_ns, end_ns, **again)
        else:
            self.recording.copy(what, start_ns, end_ns, size_bytes=length << 10, **where)

    def work(self, stream: int, length: int) -> tuple[int, int]:
        start_ns = max(self.host_ns, self.free_ns[stream]) + 500 + self.jitter * self.random.randrange(2_500)
        self.free_ns[stream] = start_ns + length * US + self.jitter * self.random.randrange(900)
        return start_ns, self.free_ns[stream]

    def mark(self, what: str, tid: int, stream: int) -> None:
        """The host waits for a stream, or the first stream waits for what this one was given so far."""
        about: Row = {"globalPid": self.recording.global_id(self.pid), "contextId": self.device + 1}
        begin_ns = self.host_ns
        if what == "sync":
            self.host_ns = max(begin_ns, self.free_ns[stream]) + 4 * US
            number = self.called("cudaStreamSynchronize_v3020", begin_ns, tid)
            self.add("SYNCHRONIZATION", about | {"streamId": stream, "syncType": 3}, begin_ns, number)
            return
        self.host_ns += US
        number = self.called("cudaEventRecord_v3020", begin_ns, tid)
        marked = about | {"eventId": 5, "eventSyncId": number}
        self.add("CUDA_EVENT", marked | {"streamId": stream}, None, number)
        begin_ns, self.host_ns = self.host_ns + 50, self.host_ns + US
        number = self.called("cudaStreamWaitEvent_v3020", begin_ns, tid)
        self.add("SYNCHRONIZATION", marked | {"streamId": 7, "syncType": 2}, begin_ns, number)
        self.free_ns[7] = max(self.free_ns[7], self.free_ns[stream])

    def called(self, api: str, begin_ns: int, tid: int) -> int:
        return self.recording.call(api, begin_ns, self.host_ns, pid=self.pid, tid=tid)

    def add(self, table: str, row: Row, begin_ns: int | None, number: int) -> None:
        times: Row = {} if begin_ns is None else {"start": begin_ns, "end": self.host_ns}
        rows = self.recording.rows.setdefault(f"CUPTI_ACTIVITY_KIND_{table}", [])
        rows.append({**row, **times, "correlationId": number})


def told(operations: list[Any], steps: int, seed: int, named: bool) -> Recording:
    """Two processes, each on its own GPU, that do the same in every step, with other times."""
    recording = Recording(hardware_id=seed % 256)
    recording.gpu()
    recording.gpu(used_by={2_000: 1})
    for pid, device in ((1_000, 0), (2_000, 1)):
        teller = Teller(recording, pid, device, seed + pid)
        teller.step([("gemm", 0, 0, 5, 20), ("d2h", 1, 0, 5, 5)], None)  # so that every process has both
        for index in range(steps):
            teller.step(operations, f"iteration {index}" if named else None)
    return recording


recordings_told = st.builds(told, program, st.integers(1, 5), seeds, st.booleans())
