"""The account of time without compute, against a second one written from the definition alone."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.by_definition.account import (
    Call,
    Mark,
    Story,
    Work,
    account,
    clocks_agree,
)
from traces.account.account import Account, measure_account
from traces.account.device import Latencies, find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.intervals import union
from traces.timeline import build

US = 1_000
GEMM = "_permute_kernel"  # compute, and a sign that tokens are routed, so that counts are named
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
LAUNCH, COPY = "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"
NO_LAUNCH = 900  # correlation ids of work whose launch was not recorded
RANGES = {"gc": "gc generation 2", "data": "enumerate(DataLoader)#_Iter.__next__"}


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


def no_edges(*_: object) -> tuple[IntArray, IntArray]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def by_program(path: Path, story: Story, windows: list[tuple[int, int]]) -> tuple[object, Latencies]:
    write_export(path, recorded(story))
    (rank,) = build(read_trace(path)).ranks
    edges = np.array(windows, dtype=np.int64).T
    with ExitStack() as recorded_edges_only:  # the definition knows no others
        for guess in ("infer_producers", "tight_producers", "sm_room_producers", "current_stream_producers"):
            recorded_edges_only.enter_context(patch(f"traces.account.producers.{guess}", no_edges))
        queueing = find_queueing(rank)
        return measure_account(rank, union(edges[0], edges[1]), queueing), queueing.latencies


def as_counter(found: Account) -> Counter[tuple[str, str]]:
    starved = {("launch_starved", cause): ns for cause, ns in found.launch_starved_ns.items()}
    blocking = {("blocking", kind): ns for kind, ns in found.blocking_ns.items()}
    rest = {
        ("launch_latency", "arrival"): found.arrival_ns,
        ("launch_latency", "kernel_gap"): found.kernel_gap_ns,
        ("dependency_stalled", ""): found.dependency_stalled_ns,
        ("graph_opaque", ""): found.graph_opaque_ns,
        ("trailing", ""): found.trailing_ns,
    }
    return +Counter(starved | blocking | rest)


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


@settings(max_examples=150, deadline=None)
@given(
    st.lists(words, min_size=6, max_size=14),
    st.booleans(),
    st.lists(st.integers(0, 100), min_size=4, max_size=4, unique=True),
)
def test_both_accounts_give_the_same_reasons(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], with_ids: bool, edges: list[int]
) -> None:
    teller = Teller()
    for said in told:
        teller.tell(*said)
    teller.tell("compute", 1000, 7, 10, 5, 3, 10)
    story = teller.story(with_ids)
    last = max(work.end for work in story.works)
    a, b, c, d = (last * edge // 98 for edge in sorted(edges))  # a little beyond the last at most
    found, latencies = by_program(tmp_path_factory.mktemp("twice") / "run.sqlite", story, [(a, b), (c, d)])
    assert isinstance(found, Account)

    story.arrival_limit, story.gap_limit = latencies.most_arrival_ns, latencies.most_gap_ns
    assert (as_counter(found), found.masked_ns) == account(story, [(a, b), (c, d)])
    none = found.graph_opaque_ns + found.trailing_ns + found.dependency_stalled_ns
    assert dict(found.decided_ns) == {"recorded": found.total_ns - none, "inferred": 0, "none": none}


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-20, 400),
    st.integers(1, 60),
    st.sampled_from([1, 31, 32, 40]),
    st.sampled_from([10, 11, 30]),
    st.one_of(st.none(), st.integers(0, 40)),
)
def test_both_agree_on_whether_the_clocks_do(
    tmp_path_factory: pytest.TempPathFactory,
    starts: int,
    length: int,
    count: int,
    period: int,
    syncs: int | None,
) -> None:
    """Kernels of 10 us, launched every `period` us and run so much later; perhaps a synchronisation."""
    calls = [Call(1000, turn * period * US, (turn * period + length) * US, LAUNCH) for turn in range(count)]
    works = [
        Work(
            (call.start // US + starts) * US,
            (call.start // US + starts + 10) * US,
            7,
            "compute",
            "gemm",
            place,
        )
        for place, call in enumerate(calls)
    ]
    last = calls[-1].end
    if syncs is not None:
        calls.append(Call(1000, last, last + (starts + syncs * 10 + 1) * US, "cudaDeviceSynchronize_v3020"))
    story = Story(works, calls)
    until = max(work.end for work in works)
    found, _ = by_program(
        tmp_path_factory.mktemp("clocks") / "run.sqlite", story, [(0, max(until, 200 * US))]
    )
    assert isinstance(found, Account) == clocks_agree(story)
