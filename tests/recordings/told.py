"""Stories of threads and streams drawn at random, and each as a recording that nsys could have noted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from bench.simulate.recording import Recording

US = 1_000
GEMM = "_permute_kernel"  # compute, and a sign that tokens are routed, so that counts are named
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
LAUNCH, COPY = "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"
NO_LAUNCH = 900  # correlation ids of work whose launch was not recorded
RANGES = {"gc": "gc generation 2", "data": "enumerate(DataLoader)#_Iter.__next__"}


@dataclass(frozen=True)
class Call:
    """What a host thread called; or an aside, what it is known to have done: profiler, os_wait, gc, data."""

    thread: int
    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Work:
    """What ran on the GPU; `bucket` is compute, comm or copy, `call` the place of the launching call."""

    start: int
    end: int
    stream: int
    bucket: str
    kind: str
    call: int | None
    size_bytes: int = 0


@dataclass(frozen=True)
class Mark:
    """An event recorded on a stream, or a stream's wait for it, by the place of the call that said so."""

    call: int
    stream: int
    event: int
    sync_id: int | None = None


@dataclass(frozen=True)
class Story:
    """A recording of one GPU. `works` stand in order of start, stream, and launch."""

    works: list[Work]
    calls: list[Call]
    records: list[Mark]
    waits: list[Mark]
    asides: list[Call]


def recorded(story: Story) -> Recording:
    """The story as nsys would have noted it."""
    recording = Recording()
    for place, call in enumerate(story.calls):
        recording.call(call.name, call.start, call.end, tid=call.thread, correlation_id=place + 1)
    for place, work in enumerate(story.works):
        number = NO_LAUNCH + place if work.call is None else work.call + 1
        where: Any = {"stream": work.stream, "correlation_id": number}
        if work.bucket == "copy":
            kind = work.kind.removeprefix("memcpy_")
            recording.copy(kind, work.start, work.end, size_bytes=work.size_bytes, **where)
        else:
            name = GEMM if work.bucket == "compute" else SENDRECV
            recording.kernel(name, work.start, work.end, **where)
    gid = recording.global_id(1000)
    for table, marks in (("CUDA_EVENT", story.records), ("SYNCHRONIZATION", story.waits)):
        for mark in marks:
            row: dict[str, Any] = {"globalPid": gid, "contextId": 1, "correlationId": mark.call + 1}
            row |= {"streamId": mark.stream, "eventId": mark.event, "eventSyncId": mark.sync_id}
            if table == "SYNCHRONIZATION":
                call = story.calls[mark.call]
                row |= {"start": call.start, "end": call.end, "syncType": 2}
            recording.rows.setdefault(f"CUPTI_ACTIVITY_KIND_{table}", []).append(row)
    for aside in story.asides:
        if aside.name in RANGES:
            recording.range(RANGES[aside.name], aside.start, aside.end, tid=aside.thread)
        else:
            table = "OSRT_API" if aside.name == "os_wait" else "PROFILER_OVERHEAD"
            thread = recording.global_id(1000, aside.thread)
            about: dict[str, Any] = {"start": aside.start, "end": aside.end, "globalTid": thread}
            about |= {"nameId": "poll" if table == "OSRT_API" else "Buffer flush"}
            recording.rows.setdefault(table, []).append(about)
    return recording


class Teller:
    """Makes up a recording that could have happened: threads call in order, streams work in order."""

    def __init__(self) -> None:
        self.calls = [Call(1000, -10 * US, -8 * US, LAUNCH)]
        self.works = [Work(0, 20 * US, 7, "compute", "gemm", 0)]
        self.records: list[Mark] = []
        self.waits: list[Mark] = []
        self.asides: list[Call] = []
        self.host = 0
        self.thread_free: dict[int, int] = {}
        self.stream_free = {7: 20 * US}
        self.recorded_ns: dict[int, int] = {}

    def call(self, thread: int, name: str, after: int, length: int) -> int:
        self.host = max(self.thread_free.get(thread, 0), self.host + after * US)
        self.thread_free[thread] = self.host + length * US
        self.calls.append(Call(thread, self.host, self.host + length * US, name))
        return len(self.calls) - 1

    def returns_at(self, place: int, end: int) -> None:
        call = self.calls[place]
        self.calls[place] = replace(call, end=max(call.end, end))
        self.thread_free[call.thread] = self.calls[place].end

    def work(self, bucket: str, kind: str, stream: int, call: int | None, delay: int, length: int) -> Work:
        start = max(self.host, self.stream_free.get(stream, 0)) + delay * US
        size = 256 if length % 2 else 1 << 20
        self.works.append(Work(start, start + length * US, stream, bucket, kind, call, size))
        self.stream_free[stream] = start + length * US
        return self.works[-1]

    def tell(self, op: str, thread: int, stream: int, after: int, length: int, delay: int, work: int) -> None:
        if op in KINDS:
            bucket = "copy" if op.startswith("memcpy") else op
            place = self.call(thread, COPY if bucket == "copy" else LAUNCH, after, length)
            made = self.work(bucket, KINDS[op], stream, place, delay, work)
            if op == "memcpy_h2d" and length % 2:  # from pageable memory
                self.returns_at(place, made.end + (delay - 5) * US)
        elif op == "graph":
            place = self.call(thread, "cudaGraphLaunch_v10000", after, length)
            self.work("compute", "gemm", stream, place, delay, work)
            self.work("comm", "sendrecv_unresolved", 8, place, delay, work)
            self.work("compute", "gemm", 7, place, delay, work)
        elif op in ("sync", "counts"):
            if op == "counts":
                self.work("copy", "memcpy_d2h", stream, self.call(thread, COPY, after, length), delay, 1)
            place = self.call(thread, "cudaStreamSynchronize_v3020", after, length)
            self.returns_at(place, self.works[-1].end + delay % 8 * US)
        elif op == "record":
            place = self.call(thread, "cudaEventRecord_v3020", after, 1)
            self.records.append(Mark(place, stream, delay % 2))
            self.recorded_ns[delay % 2] = self.stream_free.get(stream, 0)
        elif op == "wait" and len(self.waits) < 3:
            place = self.call(thread, "cudaStreamWaitEvent_v3020", after, 1)
            self.waits.append(Mark(place, stream, delay % 2))
            until = self.recorded_ns.get(delay % 2, 0)
            self.stream_free[stream] = max(self.stream_free.get(stream, 0), until)
        elif op == "unlaunched":
            self.work("compute", "gemm", stream, None, delay, work)
        elif op in CAUSES:
            self.host = max(self.host + after * US, self.asides[-1].end if self.asides else 0)
            self.asides.append(Call(thread, self.host, self.host + work * US, op))
        elif op.startswith("cu"):
            self.call(thread, op, after, length)

    def story(self, with_ids: bool) -> Story:
        def order(place: int) -> tuple[int, int, int]:
            work = self.works[place]
            return work.start, work.stream, place if work.call is None else work.call - NO_LAUNCH

        records = [replace(mark, sync_id=mark.call if with_ids else None) for mark in self.records]
        waits = [replace(mark, sync_id=self.record_of(mark) if with_ids else None) for mark in self.waits]
        works = [self.works[place] for place in sorted(range(len(self.works)), key=order)]
        return Story(works, self.calls, records, waits, self.asides)

    def record_of(self, wait: Mark) -> int:
        of_event = [mark.call for mark in self.records if mark.event == wait.event]
        return max((call for call in of_event if call < wait.call), default=999)


COPIES = {kind: kind for kind in ("memcpy_d2h", "memcpy_h2d")}
KINDS = {"compute": "gemm", "comm": "sendrecv_unresolved", **COPIES}
CAUSES = ("gc", "data", "os_wait", "profiler")
OTHERS = ("cudaMalloc_v3020", "cudaFree_v3020", "cudaFreeAsync_v11020", "cuModuleLoadData")
OPS = (*KINDS, "comm", "sync", "counts", "graph", "record", "wait", "unlaunched", *CAUSES, *OTHERS)
few = st.sampled_from([1, 2, 5, 10, 40])
threads, streams, delays = (
    st.sampled_from(some) for some in ([1000, 1000, 1001], [7, 8, 9], [0, 1, 3, 8, 30])
)


# after the last call began, length of the call, until the work starts, length of the work
words = st.tuples(st.sampled_from(OPS), threads, streams, few, few, delays, few)
