"""Summaries of ranks written by hand: collectives that wait for each other, in round numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np

from heuristics.late.run import judge, run_of
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.ranks.summaries.codec import encode
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summarise import summarise
from traces.ranks.summaries.summary import (
    UNKNOWN,
    Fingerprint,
    Group,
    GroupSource,
    Identity,
    Instances,
    KernelTimes,
    Operation,
    RankSummary,
    StepParts,
)
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.sections.run import Run
from traces.steps.choose import choose_steps
from traces.steps.selection import parse_selection
from traces.timeline import KEYS, Bucket, RankTimeline

US, MS = 1_000, 1_000_000
GEMM = KEYS[Bucket.COMPUTE].index("gemm")
ALIKE = Fingerprint(attention=2, routers=2, has_experts=True, has_embedding=False, has_loss=False)


@dataclass
class Part:
    """One rank's part in a collective; times in us on the true clock."""

    group: int
    sequence: int
    start_us: float
    end_us: float
    operation: Operation = Operation.ALL_REDUCE
    size_bytes: int = UNKNOWN
    step: int = 0
    before: Mapping[str, float] = field(default_factory=dict)
    """Of `compute`, `grouped`, `host`, `loader` the time before, where anything is told."""
    exposed_us: float | None = None
    """Without compute beside it: all of it, where nothing is told."""


def ns(us: float) -> int:
    return round(us * US)


def identity(rank: int | None, world_size: int | None = None) -> Identity:
    number = 0 if rank is None else rank
    return Identity(
        f"{number}.sqlite",
        "nsys",
        "3.25",
        rank,
        world_size,
        number % 8,
        clock=1000 + number,
        recording=2000 + number,
        process=3000 + number,
        begin_ns=0,
        end_ns=100 * MS,
    )


def summary_of(
    rank: int | None,
    parts: Sequence[Part],
    groups: Sequence[Group] | None = None,
    *,
    world_size: int | None = None,
    steps: Sequence[Mapping[str, float]] = (),
    kernels_us: Sequence[float] = (),
    alike: Fingerprint = ALIKE,
) -> RankSummary:
    """A summary. `steps`: of each step `start`, `end` and its parts, in us; what is left out is 0."""
    ordered = sorted(parts, key=lambda part: part.start_us)
    columns = [
        [part.group for part in ordered],
        [part.sequence for part in ordered],
        [int(part.operation) for part in ordered],
        [6] * len(ordered),
        [part.size_bytes for part in ordered],
        [part.step for part in ordered],
        [ns(part.start_us) for part in ordered],
        [ns(part.end_us) for part in ordered],
        [
            ns(part.end_us) - ns(part.start_us) if part.exposed_us is None else ns(part.exposed_us)
            for part in ordered
        ],
        *[
            [ns(part.before.get(name, 0)) if part.before else UNKNOWN for part in ordered]
            for name in ("compute", "grouped", "host", "loader")
        ],
    ]
    names = ("start", "end", "compute", "exposed_comm", "host", "loader", "grouped", "pace")
    return RankSummary(
        identity(rank, world_size),
        alike,
        StepParts(*(array([ns(step.get(name, 0)) for step in steps]) for name in names)),
        tuple(groups or [Group(GroupSource.COMMUNICATOR, 7)]),
        Instances(*map(array, columns)),
        KernelTimes(
            array(range(len(kernels_us))),
            array([ns(one) for one in kernels_us]),
            array([ns(one) for one in kernels_us]),
            array([GEMM] * len(kernels_us)),
            array([1] * len(kernels_us)),
        ),
    )


def array(values: Sequence[int] | range) -> IntArray:
    return np.array(list(values), dtype=np.int64)


@dataclass
class Work:
    """What a rank does before a collective, in us."""

    compute: float = 0.0
    grouped: float = 0.0
    host: float = 0.0
    loader: float = 0.0

    @property
    def whole(self) -> float:
        return self.compute + self.host + self.loader


def together(
    works: Sequence[Sequence[Work]],
    *,
    per_step: int,
    transfer_us: Sequence[float] | float = 10.0,
    operation: Operation = Operation.ALL_REDUCE,
    kernels_us: Sequence[Sequence[float]] | None = None,
    begin_us: float = 1000.0,
) -> list[RankSummary]:
    """Ranks of one group: of each its work before each collective; a step has `per_step` of them.

    A collective moves when the last rank is there; `transfer_us` is each rank's own, or that of all.
    """
    count = len(works)
    transfers = [transfer_us] * count if isinstance(transfer_us, float) else list(transfer_us)
    now = [begin_us] * count
    parts: list[list[Part]] = [[] for _ in works]
    steps: list[list[dict[str, float]]] = [[] for _ in works]
    for number in range(len(works[0])):
        starts = [now[rank] + works[rank][number].whole for rank in range(count)]
        ends = [max(starts) + transfers[rank] for rank in range(count)]
        for rank in range(count):
            work = works[rank][number]
            if number % per_step == 0:
                steps[rank].append({"start": now[rank]})
            before = {
                "compute": work.compute, "grouped": work.grouped, "host": work.host, "loader": work.loader,
            }  # fmt: skip
            told = before if number else {}
            step = steps[rank][-1]
            for name, value in before.items():
                step[name] = step.get(name, 0) + value
            step["exposed_comm"] = step.get("exposed_comm", 0) + ends[rank] - starts[rank]
            step["end"] = ends[rank]
            place = number // per_step
            parts[rank].append(Part(0, number, starts[rank], ends[rank], operation, step=place, before=told))
        now = ends
    group = [Group(GroupSource.COMMUNICATOR, 7, count)]
    return [
        summary_of(
            rank,
            parts[rank],
            group,
            world_size=count,
            steps=steps[rank],
            kernels_us=kernels_us[rank] if kernels_us else [10.0, 20.0, 30.0],
        )
        for rank in range(count)
    ]


def shifted(summary: RankSummary, offset_ns: int, drift_ppm: float = 0.0) -> RankSummary:
    """The same by a clock that is off and goes faster."""

    def at(times: IntArray) -> IntArray:
        gained: IntArray = np.rint(times * drift_ppm * 1e-6).astype(np.int64)
        return times + gained + offset_ns

    rows, steps = summary.instances, summary.steps
    return replace(
        summary,
        instances=replace(rows, start_ns=at(rows.start_ns), end_ns=at(rows.end_ns)),
        steps=replace(steps, start_ns=at(steps.start_ns), end_ns=at(steps.end_ns)),
    )


def many(rank_count: int, *, group_size: int, step_count: int, per_step: int, late: int) -> list[RankSummary]:
    """Ranks in groups that meet `per_step` times in a step, and all together once; one has a slow GPU.

    Work is 100 us before each collective, of the late rank 130; each rank has its own clock.
    """
    work_ns: IntArray = np.full(rank_count, 100 * US)
    work_ns[late] = 130 * US
    now: IntArray = np.zeros(rank_count, dtype=np.int64)
    starts: list[IntArray] = []
    ends: list[IntArray] = []
    borders = [now]
    for number in range(step_count * (per_step + 1)):
        all_together = number % (per_step + 1) == per_step
        start = now + work_ns
        last = start.max() if all_together else start.reshape(-1, group_size).max(axis=1).repeat(group_size)
        now = last + np.full(rank_count, 10 * US)
        starts.append(start)
        ends.append(now)
        if all_together:
            borders.append(now)
    start_ns, end_ns, border_ns = np.stack(starts, 1), np.stack(ends, 1), np.stack(borders, 1)
    numbers: IntArray = np.arange(start_ns.shape[1])
    of_all = (numbers % (per_step + 1) == per_step).astype(np.int64)
    step = numbers // (per_step + 1)
    sequence = np.where(of_all == 1, step, numbers - step)
    zero = np.zeros(len(numbers), dtype=np.int64)
    result = []
    for rank in range(rank_count):
        before = np.full(len(numbers), work_ns[rank])
        borders_ns = border_ns[rank]
        compute = np.full(step_count, work_ns[rank] * (per_step + 1))
        nothing = np.zeros(step_count, dtype=np.int64)
        one = RankSummary(
            identity(rank, rank_count),
            ALIKE,
            StepParts(borders_ns[:-1], borders_ns[1:], compute, *[nothing] * 5),
            (
                Group(GroupSource.COMMUNICATOR, rank // group_size, group_size),
                Group(GroupSource.COMMUNICATOR, -1, rank_count),
            ),
            Instances(
                of_all, sequence, zero + Operation.ALL_REDUCE, zero + 6, zero + UNKNOWN, step,
                start_ns[rank], end_ns[rank], end_ns[rank] - start_ns[rank], before, zero, zero, zero,
            ),
            KernelTimes(*map(array, ([1], [int(work_ns[rank])], [int(work_ns[rank])], [GEMM], [1]))),
        )  # fmt: skip
        result.append(shifted(one, 1000 * rank))
    return result


MEMBERS = ((0, 1, 2, 3), (0, 1), (2, 3), (1, 2))


def drawn(seed: int) -> list[RankSummary]:
    """Four ranks that meet in groups, by tens of us: many times are equal, and stretches touch each other."""
    draw = Random(seed)
    groups = [Group(GroupSource.COMMUNICATOR, key, draw.choice((None, 2, len(several)))) for key, several
              in enumerate(MEMBERS)]  # fmt: skip
    some: list[list[Part]] = [[], [], [], []]
    for group, several in enumerate(MEMBERS):
        operation, begin, steps = draw.choice((*Operation,)), draw.randrange(4), draw.choice((3, 99))
        for number in range(begin, begin + draw.randrange(6)):
            for rank in several:
                start, exposed, *spent = (10.0 * draw.randrange(5) for _ in range(4))
                before = dict(zip(("compute", "grouped"), spent, strict=True))
                time = 40.0 * number + start, 40.0 * number + start + draw.choice((10, 20, 40))
                step = number // steps if draw.random() < 0.9 else UNKNOWN
                did = operation if draw.random() < 0.9 else Operation.ALL_REDUCE
                size = draw.choice((UNKNOWN, 8, 8, 8, 16))
                some[rank].append(Part(group, number, *time, did, size, step, before, exposed))
    times = [{"start": 100 * step, "end": 100 * step + 90} for step in range(3)]
    return [summary_of(rank, each, groups, steps=times) for rank, each in enumerate(some)]


def summaries_in(path: Path) -> list[RankSummary]:
    """Of all ranks in a recording, through bytes."""
    return [decode(encode(measured(rank)), path.name) for rank in build(read_trace(path)).ranks]


def measured(rank: RankTimeline) -> RankSummary:
    """A rank's summary, with only what it needs measured."""
    steps = choose_steps(rank, parse_selection())
    rank = with_kinds(rank, resolve_kinds(rank))
    queueing = find_queueing(rank)
    account = measure_account(rank, steps.windows, queueing)
    return summarise(rank, steps, absent_pieces(account), queueing)


def analyse_run(summaries: Sequence[RankSummary]) -> Run:
    return run_of(judge(summaries), [one.identity.trace for one in summaries])
