"""The account of time without compute, against a second one written from the definition alone."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from tests.by_definition.account import (
    Call,
    Story,
    Work,
    account,
    clocks_agree,
)
from tests.recordings.told import (
    LAUNCH,
    US,
    Teller,
    recorded,
    words,
)
from traces.account.account import Account, measure_account
from traces.account.device import Latencies, find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.intervals import union
from traces.timeline import build


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
