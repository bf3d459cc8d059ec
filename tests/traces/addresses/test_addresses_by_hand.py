"""Addresses of real recordings by another way: raw events, looked at instant by instant.

At every so many microseconds of the steps at which no compute kernel runs: the next one to start, whether its
launch had returned, the thread that makes the next CUDA call, and what that thread was in, all by searching
lists. The names of plumbing are written out here again, as somebody who reads the stacks would.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import diagnoser
from traces.missing import Missing
from traces.names.kernels import classify_kernel
from traces.sections.addresses import Addresses

EVERY_NS = 2_000
INSTANTS = 20_000
NEAR = 0.03
"""Of the host's time: how far the two ways may be apart for one address."""


@dataclass
class Raw:
    """Begin, end, thread and name of host rows; kernels with their launch; all in ns."""

    kernels: list[tuple[int, int, int]] = field(default_factory=list)
    calls: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    more_calls: list[tuple[int, int]] = field(default_factory=list)
    spans: dict[tuple[str, int], list[tuple[int, int, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def computes(name: str) -> bool:
    return classify_kernel(name).class_ != "comm"


def of_json(path: Path) -> Raw:
    raw = Raw()
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    document = json.loads(text, strict=False, parse_float=str)
    events = document["traceEvents"] if isinstance(document, dict) else document
    for one in events:
        kind = str(one.get("cat", "")).lower()
        if one.get("ph") != "X" or "dur" not in one:
            continue
        begin = ns(one["ts"])
        end, args = begin + ns(one["dur"]), one.get("args") or {}
        if kind == "kernel" and computes(one["name"]):
            raw.kernels.append((begin, end, args.get("correlation", -1)))
        elif kind in ("cuda_runtime", "runtime", "cuda_driver"):
            raw.calls[args.get("correlation", -1)] = (begin, end, one["tid"])
            raw.more_calls.append((begin, one["tid"]))
        elif kind in ("cpu_op", "operator", "user_annotation"):
            raw.spans["ranges", one["tid"]].append((begin, end, one["name"]))
        elif kind == "python_function":
            raw.spans["frames", one["tid"]].append((begin, end, one["name"]))
    return raw


def ns(value: object) -> int:
    """Microseconds as text, exactly."""
    whole, _, part = str(value).partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def of_export(path: Path) -> Raw:
    raw = Raw()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        for begin, end, number, name in db.execute(
            "SELECT start, end, correlationId, value FROM CUPTI_ACTIVITY_KIND_KERNEL "
            "JOIN StringIds ON id = demangledName"
        ):
            if computes(name):
                raw.kernels.append((begin, end, number))
        for begin, end, thread, number in db.execute(
            "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        ):
            raw.calls[number] = (begin, end, thread)
            raw.more_calls.append((begin, thread))
        for begin, end, thread, text in db.execute(
            "SELECT start, end, globalTid, coalesce(text, value) FROM NVTX_EVENTS "
            "LEFT JOIN StringIds ON id = textId WHERE eventType IN (59, 60) AND end IS NOT NULL"
        ):
            raw.spans["ranges", thread].append((begin, end, text))
    return raw


class Innermost:
    """What holds an instant on one thread, the last to begin of it first; spans nest."""

    def __init__(self, spans: Iterable[tuple[int, int, str]]) -> None:
        self._spans = sorted(spans, key=lambda one: (one[0], -one[1]))
        self._begins = [one[0] for one in self._spans]
        self._around: list[int] = []
        open_: list[int] = []
        for place, (begin, *_) in enumerate(self._spans):
            while open_ and self._spans[open_[-1]][1] <= begin:
                open_.pop()
            self._around.append(open_[-1] if open_ else -1)
            open_.append(place)

    def at(self, now: int, fits: Callable[[str], bool]) -> str | None:
        place = bisect_right(self._begins, now) - 1
        while place >= 0:
            _, end, name = self._spans[place]
            if end > now and fits(name):
                return name
            place = self._around[place]
        return None


PLUMBING = re.compile(
    r"<built-in|nn\.Module|torch/(?:nn/modules/(?:module|container)|nn/functional|functional|_tensor|_ops|_compile"
    r"|_jit_internal|utils/_contextlib|utils/_python_dispatch|_dynamo/eval_frame|_dynamo/external_utils|_library/\w+"
    r"|autograd/(?:__init__|graph|function|grad_mode)|distributed/c10d_logger|amp/autocast_mode|overrides|storage"
    r"|_refs/\w+)\.py|torch/autograd/profiler\.py\(\d+\): (?:__init__|__enter__|__exit__)"
    r"|torch/optim/optimizer\.py\(\d+\): (?:wrapper|profile_hook_step|_use_grad)"
    r"|torch/cuda/__init__\.py\(\d+\): (?!synchronize)\w+"
    r"|^(?:\w+|collections/\w+|importlib/\w+|logging/\w+)\.py\(\d+\): (?!main|<module>|train|ddp)"
    r"|__torch_function__|<listcomp>|<genexpr>|<lambda>|<dictcomp>|^<"
)


def is_code(name: str) -> bool:
    return PLUMBING.search(name) is None


OPERATOR = re.compile(r"^\w+::|^nccl|Backward|AccumulateGrad|^detach")


def is_operator(text: str) -> bool:
    return OPERATOR.search(text) is not None


def is_no_step(text: str) -> bool:
    return not text.startswith("ProfilerStep")


def by_hand(raw: Raw, window: Sequence[tuple[int, int]]) -> tuple[Counter[str], int]:
    """Nanoseconds under each recorded name, and of all; of time before a launch has returned."""
    kernels = sorted(raw.kernels)
    begins, ends = [one[0] for one in kernels], sorted(one[1] for one in kernels)
    launches = {raw.calls[number][2] for *_, number in kernels if number in raw.calls}
    next_calls = sorted(one for one in raw.more_calls if one[1] in launches)
    call_begins = [one[0] for one in next_calls]
    within = {key: Innermost(spans) for key, spans in raw.spans.items()}
    found, total = Counter[str](), 0
    every_ns = max(EVERY_NS, sum(last - first for first, last in window) // INSTANTS)
    for first, last in window:
        for now in range(first, last, every_ns):
            place = bisect_right(begins, now)
            if place > bisect_right(ends, now) or place >= len(kernels):
                continue  # compute runs
            launch = raw.calls.get(kernels[place][2])
            if launch is None or now >= min(launch[1], kernels[place][0]):
                continue
            thread = launch[2]
            if now < launch[0] and (at := bisect_right(call_begins, now)) < len(next_calls):
                thread = next_calls[at][1]
            frames, ranges = within.get(("frames", thread)), within.get(("ranges", thread))
            name = frames.at(now, is_code) if frames else None
            if not name and ranges:
                name = ranges.at(now, is_operator) or ranges.at(now, is_no_step)
            found[name or ""] += every_ns
            total += every_ns
    return found, total


def short(name: str) -> str:
    """Of a function its file and name, of all else the text."""
    function = re.search(r"(\w+)\.py\(\d+\): (.+)$", name)
    return f"{function[1]}.{function[2]}".replace(".<module>", "") if function else name.split(", ")[0]


def compared(path: Path, raw: Raw) -> tuple[dict[str, float], dict[str, float], float]:
    """Shares of the host's time by name, as we say them and by hand; and how near the totals are.

    What waits for a collective that was launched in time is no time of the host, but of that launch.
    """
    (rank, *_) = diagnoser.analyze(path).result.ranks
    found = rank.addresses
    assert isinstance(found, Addresses)
    hand, total_ns = by_hand(raw, rank.windows_ns)
    hand_names = Counter[str]()
    for name, time_ns in hand.items():
        hand_names[short(name)] += time_ns
    ours = Counter[str]()
    for one in found.hosts:
        name = ".".join(one.name.split(".")[-2:]) if one.kind == "function" else one.name
        ours[name] += one.starved_ns if one.name.startswith("nccl") else one.total_ns
    ours_ns = ours.total() + found.hosts_left_out.starved_ns + found.hosts_left_out.blocking_ns
    return (
        {name: time_ns / ours_ns for name, time_ns in ours.items()},
        {name: time_ns / total_ns for name, time_ns in hand_names.items()},
        ours_ns / total_ns,
    )


BY_FUNCTION = ("real/tl_eager.json.gz", "real/tl_mi300_ddp_resnet18.json.gz")
BY_OPERATOR_OR_RANGE = (
    *("real/param_resnet.json.gz", "real/hackathon_mnist_1_nvtx.sqlite"),
    *("real/resnet50_workers0.pt.trace.json.gz", "real/resnet50_workers4.pt.trace.json.gz"),
    *("added/dlrm8/worker0.pt.trace.json.gz", "added/dlrm8/worker5.pt.trace.json.gz"),
)


@pytest.mark.parametrize("name", [*BY_FUNCTION, *BY_OPERATOR_OR_RANGE])
def test_the_largest_addresses_are_those_found_instant_by_instant(name: str, recordings: Path) -> None:
    path = recordings / name
    ours, hand, ratio = compared(path, of_json(path) if path.suffix == ".gz" else of_export(path))
    assert 0.9 < ratio < 1.1
    for said, share in hand.items():
        if said and share > NEAR:
            assert ours.get(said, 0.0) == pytest.approx(share, abs=NEAR), said


def test_of_a_host_that_is_in_time_compute_waits_for_collectives_of_autograd(recordings: Path) -> None:
    """By hand: each NCCL kernel's launch lies in no Python frame of its thread but those of one broadcast."""
    path = recordings / "real" / "tl_resnet_act_checkpoint.json.gz"
    (rank,) = diagnoser.analyze(path).result.ranks
    found = rank.addresses
    assert isinstance(found, Addresses)
    assert found.host_starved_ns == 0
    largest = found.hosts[0]
    assert (largest.kind, largest.name) == ("operator", "nccl:all_reduce")
    assert largest.blocking_ns > 0.9 * found.host_blocking_ns
    (broadcast,) = (one for one in found.hosts if one.name.endswith("_distributed_broadcast_coalesced"))
    assert broadcast.kind == "function"


def test_functions_are_missing_where_none_were_recorded(recordings: Path) -> None:
    (rank,) = diagnoser.analyze(recordings / "real" / "param_resnet.json.gz").result.ranks
    assert isinstance(rank.addresses, Addresses)
    assert isinstance(rank.addresses.by_function_frac, Missing)
