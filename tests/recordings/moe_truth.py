"""What the simulator knows of its own MoE layers, in the words of the MoE ledger, and how to measure one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.simulate.export import write_export
from bench.simulate.happened import Activity
from bench.simulate.host_program import Engine
from bench.simulate.recorded import START_NS, View, record
from bench.simulate.run import Run
from traces.account.account import Account, absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.arrays import IntArray
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.intervals import Spans, covered_ns, intersect, union
from traces.measure.budget import WindowBudget, measure_budget
from traces.measure.ledger import measure_ledger
from traces.measure.moe.ledger import measure_moe
from traces.measure.recompute import measure_recompute
from traces.measure.step_timeline import measure_timelines
from traces.missing import Missing
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.sections.rank import Moe
from traces.sections.tables import LedgerRow, Timeline
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import Selection

Figures = tuple[int, int, int]
"""Count, work, union."""
Key = tuple[int, str, str]
"""Layer, module, pass."""

PASSES = ("forward", "recompute", "backward")
EXPERTS = ("expert_gemm", "expert_activation", "shared_expert")
_MOVES = ("dispatch", "combine", "dispatch_bwd", "combine_bwd")
_PAYLOAD = (
    "nccl_send_recv", "deepep_dispatch", "deepep_combine", "hybridep_dispatch_fwd", "hybridep_dispatch_bwd",
    "hybridep_combine_fwd", "hybridep_combine_bwd",
)  # fmt: skip
"""What moves tokens; all other kernels of a dispatcher count, notify or synchronise."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the ledgers rest on, and the ledgers."""

    steps: Steps
    budget: WindowBudget
    account: Account | Missing
    moe: Moe | Missing
    ledger: tuple[LedgerRow, ...]
    timeline: Timeline


def measured(run: Run, view: View, folder: Path) -> Found:
    """Write a run down, read it, and measure its ledgers and no more."""
    path = folder / f"{len(list(folder.iterdir()))}.sqlite"
    write_export(path, record(run, view), view.schema)
    rank = build(read_trace(path)).ranks[0]
    steps, resolution = choose_steps(rank, Selection()), resolve_kinds(rank)
    rank = with_kinds(rank, resolution)
    account = measure_account(rank, steps.windows, find_queueing(rank))
    absent = absent_pieces(account)
    moe = measure_moe(rank, resolution, steps, measure_recompute(rank, steps.windows), absent).moe
    ledger = measure_ledger(rank.activities, steps, absent, moe)
    timeline = measure_timelines(rank, steps, absent)[0]
    return Found(steps, measure_budget(rank.activities, steps.windows), account, moe, ledger, timeline)


def true_rows(run: Run, windows: Spans) -> dict[Key, Figures]:
    """Of each layer, module and pass what ran in the windows."""
    groups: dict[Key, list[Activity]] = defaultdict(list)
    for activity, module in _modules(run):
        place = activity.work.place
        groups[place.layer, module, place.phase].append(activity)
    return _figures(groups, windows)


def over_layers(rows: Mapping[Key, Figures]) -> dict[tuple[str, str], Figures]:
    """Layers added up; exact for unions too where no two layers of one pass run at once."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for (_, module, phase), figures in rows.items():
        for place, value in enumerate(figures):
            sums[module, phase][place] += value
    return {key: (count, work, wall) for key, (count, work, wall) in sums.items()}


def _modules(run: Run) -> list[tuple[Activity, str]]:
    """Every activity of a MoE layer with its module, by what the program called it."""
    by_pass: dict[tuple[int, int, int, str], list[Activity]] = defaultdict(list)
    for activity in run.activities:
        place = activity.work.place
        if place.layer >= 0 and place.phase in PASSES:
            by_pass[place.step, place.microbatch, place.layer, place.phase].append(activity)
    found = []
    for activities in by_pass.values():
        said = [_module(activity, run.knobs.dispatcher) for activity in activities]
        for index in range(len(said) - 1, -1, -1):
            if said[index] == "cast":  # of the GEMM that follows
                said[index] = said[index + 1] if said[index + 1] in EXPERTS else ""
        last = "expert_gemm"
        for activity, module in zip(activities, said, strict=True):
            if module == "activation":  # of the linear layer before it
                module = "shared_expert" if last == "shared_expert" else "expert_activation"
            elif module in EXPERTS:
                last = module
            if module:
                found.append((activity, module))
    return found


def _module(activity: Activity, dispatcher: str) -> str:
    operation, work = activity.work.place.operation, activity.work
    head, _, rest = operation.partition(" ")
    if head in _MOVES:
        forward = head.removesuffix("_bwd")
        if work.engine is Engine.COMMUNICATION:
            payload = dispatcher == "allgather" or work.kernel in _PAYLOAD
            return forward if payload else "preprocess_and_token_sync"
        if rest in ("multihot", "row_id_map"):
            return "preprocess_and_token_sync"
        return "permute" if forward == "dispatch" else "unpermute"
    if operation == "token_counts":
        return "preprocess_and_token_sync"
    if operation.startswith(("router", "topk", "aux_loss")):
        return "router"
    if operation.startswith(("fc1", "fc2")):
        return "expert_gemm"
    if operation.startswith("shared_"):
        return "shared_expert"
    return {"quantize": "cast", "activation_fwd": "activation", "activation_bwd": "activation"}.get(
        operation, ""
    )


def _figures(groups: Mapping[Key, Sequence[Activity]], windows: Spans) -> dict[Key, Figures]:
    result = {}
    for key, activities in groups.items():
        start, end = _times(activities)
        work_ns = covered_ns(start, end, windows)
        if count := int((work_ns > 0).sum()):
            result[key] = count, int(work_ns.sum()), intersect(union(start, end), windows).total_ns
    return result


def _times(activities: Sequence[Activity]) -> tuple[IntArray, IntArray]:
    times = np.array([(a.start_ns, a.end_ns) for a in activities], dtype=np.int64).reshape(-1, 2) + START_NS
    return times[:, 0], times[:, 1]
