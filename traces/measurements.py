"""All measurements of one rank."""

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from traces.account.account import Account, absent_pieces, measure_account
from traces.account.clocks import clock_offset_ns
from traces.account.device import find_queueing
from traces.addresses.measure import measure_addresses
from traces.arrays import NOWHERE, IntArray, summed
from traces.columns import Gpu
from traces.cures import cure
from traces.frozen import frozen
from traces.host_clock import ClockFix
from traces.intervals import Spans
from traces.measure.a2a import measure_a2a
from traces.measure.bounds import Bounds, measure_bounds
from traces.measure.budget import WindowBudget, measure_budget, measure_totals
from traces.measure.cold import measure_cold
from traces.measure.data_loading import measure_data_loading
from traces.measure.detected import detect
from traces.measure.host_copies import offload_places, resident_places
from traces.measure.kernel_table import measure_kernels
from traces.measure.ledger import measure_ledger
from traces.measure.memory import measure_memory
from traces.measure.moe.ledger import measure_moe
from traces.measure.moe.passes import PassCount
from traces.measure.rates import measure_rates
from traces.measure.recompute import Recompute, measure_recompute
from traces.measure.sequence import measure_sequence
from traces.measure.sm import measure_sm, stretch_by_sms
from traces.measure.step_timeline import measure_timelines
from traces.measure.tensor_cores import measure_tensor_cores, simt_places, tensor_frac, wide_places
from traces.measure.unnamed import Unnamed, measure_unnamed
from traces.measure.work import measure_work
from traces.missing import Missing, OrMissing, gap, known
from traces.progress import report
from traces.ranks.summaries.collective_rates import measure_collectives
from traces.ranks.summaries.summarise import summarise
from traces.ranks.summaries.summary import RankSummary
from traces.replay.changes.costs import Costs, measure_costs
from traces.replay.edits import Subject
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import Unresolved, with_kinds
from traces.sections.addresses import Addresses
from traces.sections.rank import (
    A2a,
    Detected,
    Memory,
    Moe,
    Sm,
    TensorCores,
    Totals,
)
from traces.sections.rates import Rates
from traces.sections.section import copied
from traces.sections.tables import KernelTable, LedgerRow, Sequence, Timeline
from traces.sections.work import DataLoading, Work
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import Selection
from traces.timeline import Activities, RankTimeline


@frozen
class RankMeasurements:
    """The numbers of one process on one GPU; what has a name of `ranks[]` is that section.

    `process`, `gpu` and `rank` are None where the trace does not say. `unseen`: why communication
    cannot be told from compute, None where it can; where only whole graph replays were recorded the
    budget's compute means busy. `clock_offset_ns` is 0 where host and GPU clocks agree, None where
    no launch was recorded. `clock`: how they were made to, where they did not. `summary` is all
    that a run of many ranks needs of it. `moe_passes`: passes through MoE layers of each used step.
    `compute_work_ns`: of compute kernels, where their launches tell how they use the SMs.
    `launched_count` counts the kernels whose launch was recorded, `recorded_host_rows` the calls
    and ranges of the launching threads in the windows. `cold_ns`: of a window in which hardly any
    kernel comes again, what first runs take.
    """

    trace: str
    kind: str
    process: int | None
    device: int
    gpu: Gpu | None
    physical_gpu: int | None
    rank: int | None
    unseen: Missing | None
    totals: OrMissing[Totals]
    steps: Steps
    budget: WindowBudget
    clock_offset_ns: int | None
    clock: ClockFix | None
    account: Account | Missing
    costs: Costs | Missing
    bounds: Bounds
    sm: Sm
    compute_work_ns: int | None
    a2a: A2a | Missing
    unresolved: tuple[Unresolved, ...]
    detected: Detected
    recompute: Recompute
    memory: Memory
    tensor_cores: TensorCores
    moe: Moe | Missing
    moe_passes: tuple[PassCount, ...] | None
    ledger: tuple[LedgerRow, ...]
    summary: RankSummary
    data_loading: DataLoading
    work: Work
    addresses: OrMissing[Addresses]
    rates: Rates
    kernel_table: KernelTable
    sequence: OrMissing[Sequence]
    timeline: Timeline
    other_steps: tuple[Timeline, ...]
    unnamed: Unnamed
    kernel_count: int
    replay_count: int
    launched_count: int
    recorded_host_rows: int
    cold_ns: int
    outside_activity_ns: int
    """How much of a window the user gave lies before the first or after the last GPU activity."""


def measure_rank(
    rank: RankTimeline, selection: Selection, *, only_data_parallel: bool = False
) -> RankMeasurements:
    """Measure one rank; `only_data_parallel`: as it is configured. Raises `EmptySelection`."""
    info, tell = rank.columns.info, partial(_report_phase, rank.columns.info.name)
    tell("steps")
    steps = choose_steps(rank, selection)
    tell("communication")
    windows, resolution = steps.windows, resolve_kinds(rank, only_data_parallel=only_data_parallel)
    rank = with_kinds(rank, resolution)
    rows, unseen = rank.activities, _why_unseen(rank)
    tell("recomputed layers")
    recompute = measure_recompute(rank, windows, whole_steps=bool(steps.used))
    tell("time without compute")
    queueing = find_queueing(rank)
    account = measure_account(rank, windows, queueing)
    unnamed = measure_unnamed(rank, queueing, steps)
    tell("SMs")
    use = measure_sm(rank, windows, rank.gpu, rank.columns.gpu_samples)
    absent = absent_pieces(account)
    subject = subject_of(rank, steps, recompute, use.sm, unnamed.apart)
    budget, costs = measure_budget(rows, windows), measure_costs(subject, account, queueing)
    tell("layers")
    layers = measure_moe(rank, resolution, steps, recompute, absent)
    summary = summarise(rank, steps, absent, queueing, layers)
    del queueing
    timeline, other_steps = measure_timelines(rank, steps, absent)
    ledger, account = measure_ledger(rows, steps, absent, layers.moe), _without_pieces(account)
    return copied(
        RankMeasurements,
        rank,
        trace=info.name,
        kind=info.kind,
        rank=None if rank.process is None else rank.columns.rank_of.get(rank.process),
        unseen=unseen,
        totals=measure_totals(rows, unseen),
        steps=steps,
        budget=budget,
        clock_offset_ns=clock_offset_ns(rank),
        account=account,
        costs=costs,
        bounds=measure_bounds(subject, budget, account, recompute.unseen_ns),
        a2a=measure_a2a(rank, resolution, windows, steps, account),
        unresolved=resolution.unresolved,
        detected=detect(rank, resolution, steps, recompute),
        recompute=recompute,
        memory=measure_memory(rank, steps, recompute),
        tensor_cores=measure_tensor_cores(rank, windows, rank.gpu),
        sm=use.sm,
        compute_work_ns=use.work_ns,
        moe=layers.moe,
        moe_passes=layers.passes,
        ledger=ledger,
        summary=summary,
        data_loading=measure_data_loading(rank, steps, ledger, subject.resident),
        work=measure_work(rank, steps),
        addresses=measure_addresses(rank, windows, absent),
        rates=measure_rates(rank, windows, rank.gpu, measure_collectives(rank, windows, summary)),
        kernel_table=measure_kernels(rank, windows),
        sequence=measure_sequence(rank, steps),
        timeline=timeline,
        other_steps=other_steps,
        unnamed=unnamed,
        kernel_count=summed(rows.is_kernel),
        replay_count=summed(rows.is_replay),
        launched_count=summed(rows.is_kernel & rows.is_launched),
        recorded_host_rows=_host_rows(rank, steps),
        cold_ns=measure_cold(rank, steps),
        outside_activity_ns=_outside_ns(rows, windows),
    )


def _without_pieces(account: Account | Missing) -> Account | Missing:
    return account if isinstance(account, Missing) else replace(account, pieces=None)


def _outside_ns(rows: Activities, windows: Spans) -> int:
    before_ns = int(rows.start_ns.min()) - int(windows.start_ns[0])
    return max(0, before_ns) + max(0, int(windows.end_ns[-1]) - int(rows.end_ns.max()))


def _why_unseen(rank: RankTimeline) -> Missing | None:
    rows, kind = rank.activities, rank.columns.info.kind
    if not rank.has_kernels:
        reason = "graph replays were recorded whole: their kernels are not in the trace"
        return gap(reason, cure("graphs", kind))
    if not (rows.is_kernel & (rows.name >= 0)).any():
        reason = "no kernel has a name, so communication cannot be separated from compute"
        return gap(reason, cure("all_names", kind))
    return None


_PHASES: Final = (
    "steps",
    "communication",
    "recomputed layers",
    "time without compute",
    "SMs",
    "layers",
)


def _report_phase(trace: str, phase: str) -> None:
    report(f"measuring {trace}: {phase}", _PHASES.index(phase) / len(_PHASES))


def _host_rows(rank: RankTimeline, steps: Steps) -> int:
    threads, count = rank.activities.launching_threads, 0
    for rows in (rank.calls, rank.columns.ranges):
        count += summed(np.isin(rows.thread_gid, threads) & steps.windows.hold(rows.start_ns))
    return count


def subject_of(
    rank: RankTimeline, steps: Steps, recompute: Recompute, sm: Sm, apart: IntArray = NOWHERE
) -> Subject:
    """What a replay of a rank takes away, by what was measured of it."""
    offloaded = offload_places(rank, steps)
    resident = resident_places(rank, steps, offloaded)
    sm_count, stretch = known(sm.sm_count), known(sm.stretch)
    by_sms = stretch_by_sms(known(sm.comm_blocks_mean), sm_count)
    return Subject(
        rank,
        steps,
        recomputed=recompute.places,
        offloaded=NOWHERE if isinstance(offloaded, Missing) else offloaded,
        resident=NOWHERE if isinstance(resident, Missing) else resident,
        stretch_frac=stretch.frac if stretch else by_sms,
        sm_count=sm_count,
        stretch_measured=stretch is not None,
        simt=simt_places(rank),
        tensor_frac=tensor_frac(rank.gpu),
        wide=wide_places(rank, rank.gpu),
        apart=apart,
    )
