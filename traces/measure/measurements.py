"""All measurements of one rank."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from traces.account.account import Account, absent_pieces, measure_account
from traces.account.clocks import clock_offset_ns
from traces.account.device import find_queueing
from traces.columns import NULL, Gpu, distinct
from traces.host_clock import ClockFix
from traces.intervals import Spans, covered_ns
from traces.measure.a2a import A2a, measure_a2a
from traces.measure.bounds import Bounds, measure_bounds
from traces.measure.budget import Budget, measure_budget
from traces.measure.data_loading import DataLoading, measure_data_loading
from traces.measure.detected import Detected, detect
from traces.measure.host_copies import offload_places, resident_places
from traces.measure.kernel_table import KernelTable, measure_kernels
from traces.measure.ledger import LedgerRow, measure_ledger
from traces.measure.memory import Memory, measure_memory
from traces.measure.moe_ledger import MoeLedger, measure_moe
from traces.measure.precision import Precision, detect_precision
from traces.measure.recompute import Recompute, measure_recompute
from traces.measure.sm import SmUse, measure_sm
from traces.measure.sm_beside_comm import stretch_by_sms
from traces.measure.step_timeline import measure_timelines
from traces.measure.tensor_cores import (
    TensorCores,
    measure_tensor_cores,
    simt_places,
    tensor_frac,
    wide_places,
)
from traces.measure.timeline_columns import StepTimeline
from traces.measure.totals import Totals, measure_totals
from traces.measure.unknown import UnknownKernel, unknown_kernels
from traces.missing import Missing
from traces.progress import report
from traces.ranks.summarise import summarise
from traces.ranks.summary import RankSummary
from traces.replay.costs import Costs, measure_costs
from traces.replay.edits import NOWHERE, Subject
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import Unresolved, with_kinds
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import Selection
from traces.timeline import Activities, RankTimeline, Source


@dataclass(frozen=True, slots=True)
class RankMeasurements:
    """The numbers of one process on one GPU.

    `process`, `gpu` and `rank` are None where the trace does not say. `kernels_recorded` is False where only
    whole graph replays were recorded: then `totals` is None and the budget's compute means busy.
    `names_recorded` is False where no kernel has a name: then communication cannot be told from compute.
    `clock_offset_ns` is 0 where host and GPU clocks agree, None where no launch was recorded. `clock`: how
    they were made to, where they did not.
    `summary` is all that a run of many ranks needs of it.
    `launched_count` counts the kernels whose launch was recorded, `recorded_host_rows` the calls and ranges
    of the launching threads in the windows.
    """

    trace: str
    kind: str
    process: int | None
    device: int
    gpu: Gpu | None
    rank: int | None
    kernels_recorded: bool
    names_recorded: bool
    totals: Totals | None
    steps: Steps
    budget: Budget
    clock_offset_ns: int | None
    clock: ClockFix | None
    account: Account | Missing
    costs: Costs | Missing
    bounds: Bounds
    sm: SmUse
    a2a: A2a | None
    unresolved: tuple[Unresolved, ...]
    detected: Detected
    recompute: Recompute
    memory: Memory
    precision: Precision
    tensor_cores: TensorCores
    moe: MoeLedger | Missing
    ledger: tuple[LedgerRow, ...]
    summary: RankSummary
    data_loading: DataLoading
    kernels: KernelTable
    timeline: StepTimeline
    other_steps: tuple[StepTimeline, ...]
    unknown_kernels: tuple[UnknownKernel, ...]
    kernel_count: int
    replay_count: int
    launched_count: int
    recorded_host_rows: int
    outside_activity_ns: int
    """How much of a window the user gave lies before the first or after the last GPU activity."""

    @property
    def communication_told(self) -> bool:
        """Whether communication can be told from compute."""
        return self.kernels_recorded and self.names_recorded


def measure_rank(
    rank: RankTimeline, selection: Selection, *, only_data_parallel: bool = False
) -> RankMeasurements:
    """Measure one rank. Raises `EmptySelection` where the selection matches nothing of it.

    `only_data_parallel`: the run's configuration says that it is parallel over data alone.
    """
    tell = partial(_tell, rank.columns.info.name)
    tell("steps")
    steps = choose_steps(rank, selection)
    tell("communication")
    resolution = resolve_kinds(rank, only_data_parallel=only_data_parallel)
    rank = with_kinds(rank, resolution)
    rows, is_kernel = rank.activities, rank.activities.source == Source.KERNEL
    tell("recomputed layers")
    recompute = measure_recompute(rank, steps.windows, whole_steps=bool(steps.used))
    tell("time without compute")
    queueing = find_queueing(rank)
    account = measure_account(rank, steps.windows, queueing)
    tell("SMs")
    sm = measure_sm(rank, steps.windows, rank.gpu, rank.columns.gpu_samples)
    absent = absent_pieces(account)
    subject = subject_of(rank, steps, recompute, sm)
    budget = measure_budget(rows, steps.windows)
    costs = measure_costs(subject, account, queueing)
    del queueing
    tell("layers")
    moe = measure_moe(rank, resolution, steps, recompute, absent)
    timelines = measure_timelines(rank, steps, absent)
    ledger = measure_ledger(rows, steps, budget, absent, moe)
    account = account if isinstance(account, Missing) else replace(account, pieces=None)
    return RankMeasurements(
        trace=rank.columns.info.name,
        kind=rank.columns.info.kind,
        process=rank.process,
        device=rank.device,
        gpu=rank.gpu,
        rank=None if rank.process is None else rank.columns.rank_of.get(rank.process),
        kernels_recorded=rank.has_kernels,
        names_recorded=bool((is_kernel & (rows.name >= 0)).any()),
        totals=measure_totals(rows),
        steps=steps,
        budget=budget,
        clock_offset_ns=clock_offset_ns(rank),
        clock=rank.clock,
        account=account,
        costs=costs,
        bounds=measure_bounds(subject, budget, account, recompute.unseen_ns),
        a2a=measure_a2a(rank, resolution, steps.windows, steps),
        unresolved=resolution.unresolved,
        detected=detect(rank, steps.windows),
        recompute=recompute,
        memory=measure_memory(rank, steps, rank.gpu, recompute),
        precision=detect_precision(rank, steps.windows),
        tensor_cores=measure_tensor_cores(rank, steps.windows, rank.gpu),
        sm=sm,
        moe=moe,
        ledger=ledger,
        summary=summarise(rank, steps, absent, moe),
        data_loading=measure_data_loading(rank, steps, ledger),
        kernels=measure_kernels(rank, steps.windows),
        timeline=timelines.shown,
        other_steps=timelines.others,
        unknown_kernels=unknown_kernels(rank, steps.windows),
        kernel_count=int(is_kernel.sum()),
        replay_count=int((rows.source == Source.REPLAY).sum()),
        launched_count=int((is_kernel & (rows.launch_ns != NULL)).sum()),
        recorded_host_rows=_host_rows(rank, steps),
        outside_activity_ns=_outside_ns(rows, steps.windows),
    )


_PHASES: Final = (
    "steps",
    "communication",
    "recomputed layers",
    "time without compute",
    "SMs",
    "layers",
)


def _tell(trace: str, phase: str) -> None:
    report(f"measuring {trace}: {phase}", _PHASES.index(phase) / len(_PHASES))


def _outside_ns(rows: Activities, windows: Spans) -> int:
    before = int(rows.start_ns.min()) - int(windows.start_ns.min())
    return max(0, before) + max(0, int(windows.end_ns.max()) - int(rows.end_ns.max()))


def _host_rows(rank: RankTimeline, steps: Steps) -> int:
    thread = distinct(rank.activities.launch_thread[rank.activities.launch_thread != NULL])
    count = 0
    for rows in (rank.columns.calls, rank.columns.ranges):
        mine = np.isin(rows.thread_gid, thread)
        count += int((covered_ns(rows.start_ns, rows.start_ns + 1, steps.windows)[mine] > 0).sum())
    return count


def subject_of(rank: RankTimeline, steps: Steps, recompute: Recompute, sm: SmUse) -> Subject:
    """What a replay of a rank takes away, by what was measured of it."""
    offloaded = offload_places(rank, steps)
    resident = resident_places(rank, steps, offloaded)
    stretch_frac = sm.stretch.frac if sm.stretch else stretch_by_sms(sm.comm_blocks, sm.sm_count)
    return Subject(
        rank,
        steps,
        recomputed=recompute.places,
        offloaded=NOWHERE if isinstance(offloaded, Missing) else offloaded,
        resident=NOWHERE if isinstance(resident, Missing) else resident,
        stretch_frac=stretch_frac,
        sm_count=sm.sm_count,
        stretch_measured=sm.stretch is not None,
        simt=simt_places(rank),
        tensor_frac=tensor_frac(rank.gpu),
        wide=wide_places(rank, rank.gpu),
    )
