"""One rank, as measured -> its summary."""

from typing import Final

import numpy as np

from traces.account.absent import AbsentPieces
from traces.columns import BoolArray, IntArray
from traces.intervals import Spans, covered_ns
from traces.measure.moe_ledger import MoeLedger
from traces.missing import Missing
from traces.ranks.collectives import Spent, collectives_of, spent_by
from traces.ranks.identity import fingerprint_of_columns
from traces.ranks.kernel_times import kernel_times
from traces.ranks.loading import loading_ns
from traces.ranks.paces import paces
from traces.ranks.summary import (
    UNKNOWN,
    ExpertWork,
    Fingerprint,
    Identity,
    RankSummary,
    StepParts,
)
from traces.steps.found import Steps
from traces.timeline import KEYS, Bucket, RankTimeline

_CELLS: Final = 4096
"""Layers times steps of which a summary has the expert work: those of the last steps."""
_CLASSES: Final = KEYS[Bucket.COMPUTE]
_HOST_FROM: Final = 48
"""The bits of a packed id from here on are of the machine (nsys: hardware 8 bits, virtual machine 8)."""


def summarise(
    rank: RankTimeline,
    steps: Steps,
    absent: AbsentPieces | Missing,
    moe: MoeLedger | None = None,
) -> RankSummary:
    """What a run needs of a rank, whose activities carry the resolved kinds. `moe`: its ledger."""
    spent = spent_by(rank, steps, absent)
    found = collectives_of(rank, steps, spent)
    return RankSummary(
        identity=_identity(rank),
        fingerprint=_fingerprint(rank, steps),
        steps=_step_parts(rank, steps, spent),
        groups=found.groups,
        instances=found.instances,
        kernels=kernel_times(rank, steps.windows, spent.comm),
        messages=found.messages,
        peers=found.peers,
        experts=_experts(moe),
    )


def _experts(moe: MoeLedger | None) -> ExpertWork:
    if moe is not None and moe.expert_work is not None:
        return ExpertWork(*(column[-_CELLS:] for column in moe.expert_work))
    return ExpertWork.none()


def _identity(rank: RankTimeline) -> Identity:
    columns, rows, info = rank.columns, rank.activities, rank.columns.info
    recording = fingerprint_of_columns(rows.start_ns, rows.end_ns, np.array([rank.process_gid]))
    calls = columns.calls
    host = np.array([rank.process_gid >> _HOST_FROM])
    clock = (
        fingerprint_of_columns(np.sort(calls.start_ns), np.sort(calls.end_ns), host)
        if len(calls)
        else recording
    )
    return Identity(
        trace=info.name,
        kind=info.kind,
        version=info.schema,
        rank=None if rank.process is None else columns.rank_of.get(rank.process),
        world_size=columns.world_size,
        device=rank.device,
        clock=clock,
        recording=recording,
        process=rank.process,
        session_start_ns=columns.session_start_ns,
        begin_ns=int(rows.start_ns.min()),
        end_ns=int(rows.end_ns.max()),
    )


def _fingerprint(rank: RankTimeline, steps: Steps) -> Fingerprint:
    rows = rank.activities
    starts = rows.start_ns[rows.bucket == Bucket.COMPUTE]
    keys = rows.key[rows.bucket == Bucket.COMPUTE]

    def per_step(name: str) -> int:
        return _median_count(starts[keys == _CLASSES.index(name)], steps)

    inside = covered_ns(starts, starts + 1, steps.windows) > 0
    return Fingerprint(
        attention=per_step("attention"),
        routers=per_step("router"),
        has_experts=_has(keys[inside], "grouped_gemm"),
        has_embedding=_has(keys[inside], "embedding"),
        has_loss=_has(keys[inside], "loss"),
    )


def _has(keys: IntArray, name: str) -> bool:
    which: BoolArray = keys == _CLASSES.index(name)
    return bool(which.any())


def _median_count(starts_ns: IntArray, steps: Steps) -> int:
    """How many begin in the median used step, or in the window where there are no steps."""
    if not steps.used:
        return int((covered_ns(starts_ns, starts_ns + 1, steps.windows) > 0).sum())
    borders = [(step.start_ns, step.end_ns) for step in steps.used]
    counts = [np.searchsorted(starts_ns, end) - np.searchsorted(starts_ns, begin) for begin, end in borders]
    return int(np.median(counts))


def _step_parts(rank: RankTimeline, steps: Steps, spent: Spent) -> StepParts:
    start_ns = np.array([step.start_ns for step in steps.used], dtype=np.int64)
    end_ns = np.array([step.end_ns for step in steps.used], dtype=np.int64)
    unknown = np.full(len(start_ns), UNKNOWN, dtype=np.int64)

    def within(spans: Spans | None) -> IntArray:
        return unknown if spans is None else covered_ns(start_ns, end_ns, spans)

    loader_ns = within(spent.loader)
    if spent.loader is not None:
        loader_ns[:1] += loading_ns(rank, steps)

    return StepParts(
        start_ns=start_ns,
        end_ns=end_ns,
        compute_ns=within(spent.compute),
        exposed_comm_ns=within(spent.exposed),
        host_starved_ns=within(spent.host),
        loader_ns=loader_ns,
        grouped_ns=within(spent.grouped),
        pace_ns=paces(rank, steps),
    )
