"""The MoE ledger of a rank: what each module of its MoE layers takes, by pass and layer, and the
MoE tax.
"""

from itertools import product
from typing import Final

import numpy as np

from traces.account.pieces import REASONS, AbsentPieces
from traces.arrays import CODE, BoolArray, IntArray, Lasting, ints, listed, summed
from traces.frozen import frozen
from traces.groups import begins, first_of, group_of, places_of_each, sums_of
from traces.intervals import Spans, instants_in, intersect, join, ns_in, subtract
from traces.limits import HALF_A_WALL, NEARLY_ALL
from traces.measure.ledger import borders_of, cut_at, per_step_ns
from traces.measure.moe.layers import counted, layers_of, steps_at
from traces.measure.moe.modules import MODULES, Membership, members_of
from traces.measure.moe.passes import (
    Evidence,
    Kind,
    Lanes,
    PassCount,
    Passes,
    evidence_of,
    lanes_of,
    passes_of,
)
from traces.measure.recompute import Recompute
from traces.missing import Missing, gap
from traces.resolve.resolution import OPERATIONS, PAYLOAD_KINDS, PHASES, UNTOLD, Resolution
from traces.sections.rank import PASSES, LayerRow, Moe, MoeRow
from traces.steps.found import Steps
from traces.timeline import Activities, RankTimeline
from traces.training import roles_of

TOKEN_SYNC = REASONS.index("launch_starved.token_count_sync")


@frozen
class Measured:
    """What rows are added up from."""

    rows: Activities
    windows: Spans
    borders: Lasting
    absent: AbsentPieces | Missing

    def of(self, which: BoolArray | IntArray) -> Spans:
        """Instants in the windows at which any of the activities, by mask or place, runs."""
        return instants_in(self.windows, self.rows, which)


def moe_rows(measured: Measured, members: Membership, kind_of_rest: IntArray) -> tuple[MoeRow, ...]:
    """Rows with anything in them, module after module. `kind_of_rest`: the kind of every activity,
    (n,).

    `count`: activities with time in the windows; `work_ns`: their sum; `wall_ns`: their union,
    which `per_step_ns` splits by used step (one entry where there are no steps). `exposed_ns`: the
    part of that union in which no compute ran, 0 for compute. `blocking_ns`: time without compute
    that the account lays on these activities; `host_wait_ns`: time in which the host kept the GPU
    waiting behind a read of token counts.
    """
    rows = measured.rows
    compute = rows.is_compute
    work_ns = ns_in(rows, measured.windows)
    not_compute = subtract(measured.windows, measured.of(compute))
    blocking = _blocking(measured)
    waits = _host_waits(measured, np.where(members.kind == UNTOLD, kind_of_rest, members.kind))
    result = []
    for module, kind in product(range(len(MODULES)), Kind):
        mine = (work_ns > 0) & (members.module == module) & (members.kind == kind)
        if not mine.any():
            continue
        held = measured.of(mine)
        sync = MODULES[module] == "preprocess_and_token_sync"
        result.append(
            MoeRow(
                MODULES[module],
                PASSES[kind],
                summed(mine),
                summed(work_ns[mine]),
                held.total_ns,
                intersect(measured.of(mine & ~compute), not_compute).total_ns,
                blocking if isinstance(blocking, Missing) else summed(blocking[mine]),
                waits if isinstance(waits, Missing) else int(waits[kind]) * sync,
                listed(per_step_ns(held, measured.borders)),
            )
        )
    return tuple(result)


def layer_rows(measured: Measured, members: Membership, layer: IntArray) -> tuple[LayerRow, ...]:
    """Rows of each layer. `layer`: of each activity, shape (n,), `UNTOLD` where none."""
    work_ns = ns_in(measured.rows, measured.windows)
    mine = np.flatnonzero((members.module != UNTOLD) & (layer != UNTOLD) & (work_ns > 0))
    keys = members.kind[mine], members.module[mine], layer[mine]
    group = group_of(*keys)
    cells = np.stack(keys, axis=1)[first_of(group)].tolist()
    result = []
    for (kind, module, number), (_, places) in zip(cells, places_of_each(group), strict=True):
        here = mine[places]
        work, wall = summed(work_ns[here]), measured.of(here).total_ns
        result.append(LayerRow(number, MODULES[module], PASSES[kind], len(here), work, wall))
    return tuple(result)


def expert_work(
    measured: Measured, members: Membership, layer: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Used step, layer and time of the experts' GEMMs, in that order. `layer`: as in
    `layer_rows`.
    """
    rows = measured.rows
    step = steps_at(measured.borders, rows.start_ns)
    mine = (step != UNTOLD) & (layer != UNTOLD) & members.are("expert_gemm")
    cell, place = np.unique(np.stack((step[mine], layer[mine])), axis=1, return_inverse=True)
    work_ns = sums_of(rows.length_ns[mine], place.ravel(), cell.shape[1])
    return ints(cell[0]), ints(cell[1]), work_ns


def tax_spans(measured: Measured, members: Membership) -> Spans:
    """Instants that exist only because tokens are routed; see `measure_moe`."""
    experts = members.are("expert_gemm", "expert_activation", "shared_expert")
    taxed = (members.module != UNTOLD) & ~experts
    held = measured.of(taxed)
    if not isinstance(absent := measured.absent, Missing):
        held = join(held, instants_in(measured.windows, absent, absent.reason == TOKEN_SYNC))
    return subtract(held, measured.of(measured.rows.is_compute & ~taxed))


def _blocking(measured: Measured) -> IntArray | Missing:
    """Of each activity the time without compute that waited for it, shape (n,)."""
    if isinstance(absent := measured.absent, Missing):
        return absent
    pieces = cut_at(absent.start_ns, absent.end_ns, measured.borders)
    work = absent.work[pieces.of]
    return sums_of(pieces.length_ns[work >= 0], work[work >= 0], len(measured.rows))


def _host_waits(measured: Measured, kind: IntArray) -> IntArray | Missing:
    """Time behind reads of token counts by the kind of the kernel that came late, shape
    (kinds,).
    """
    if isinstance(absent := measured.absent, Missing):
        return absent
    sync = np.flatnonzero(absent.reason == TOKEN_SYNC)
    pieces = cut_at(absent.start_ns[sync], absent.end_ns[sync], measured.borders)
    return sums_of(pieces.length_ns, kind[absent.kernel[sync]][pieces.of], len(Kind))


_GATHERS: Final = (OPERATIONS.index("all_gather"), OPERATIONS.index("reduce_scatter"))


@frozen
class MoeLedger:
    """Modules of the MoE layers in the windows, and what other files count with.

    `passes`: of each used step; None where a pass in them does not close, or without steps.
    `expert_work`: as rows (used step, layer, time of expert GEMMs), arrays of one length; None
    where layers are not known.
    """

    moe: Moe | Missing
    passes: tuple[PassCount, ...] | None = None
    expert_work: tuple[IntArray, IntArray, IntArray] | None = None


def measure_moe(
    rank: RankTimeline,
    resolution: Resolution,
    steps: Steps,
    recompute: Recompute,
    absent: AbsentPieces | Missing,
) -> MoeLedger:
    """The ledger of one rank, whose activities carry the resolved kinds; `Missing` where nothing is
    routed.

    `tax_ns` is the wall time that exists only because tokens are routed: the union of router,
    preprocess and token-count copies, permute, dispatch, combine and unpermute (all passes), with
    the time in which the host kept the GPU waiting behind a read of token counts, less every
    instant at which compute outside of these ran: what is hidden under other work costs nothing.
    Experts and shared expert are no tax. Other communication does not hide it. A host that polls
    memory for its counts (DeepEP) makes no call that would tell, and is not in it. `tax_frac` is
    its part of the windows.

    Needs no ranges: a pass is dispatch, experts, combine in the order of one thread's launches.
    Layers are counted where that can be checked (`traces.measure.moe.layers`), else named by
    ranges, else missing.
    """
    if (refused := _refused(rank, steps)) is not None:
        return MoeLedger(refused)
    lanes = lanes_of(rank, resolution)
    evidence = evidence_of(rank, resolution, recompute.places, roles_of(rank).autograd)
    passes = passes_of(lanes, resolution, evidence)
    members = members_of(lanes, passes, evidence)
    if (refused := _unclear(rank, passes)) is None:
        refused = _untold_recompute(passes, recompute)
    if refused is not None:
        return MoeLedger(refused)
    if not (members.module != UNTOLD).any():
        reason = "no kernel routes tokens, and no expert traffic ran"
        return MoeLedger(gap(reason, "none is needed for a dense model"))
    measured = Measured(rank.activities, steps.windows, borders_of(steps), absent)
    layers = _layers(rank, steps, lanes, passes)
    by_layer, work = tuple[LayerRow, ...](), None
    number: int | Missing | None
    if isinstance(layers, Missing):
        number = layers
    else:
        layer = np.append(layers, UNTOLD)[members.of]
        by_layer, work = layer_rows(measured, members, layer), expert_work(measured, members, layer)
        number = len({row.layer for row in by_layer}) or None
    untold = _no_tax(resolution, members, absent)
    tax_ns = tax_spans(measured, members).total_ns if untold is None else untold
    moe = Moe(
        tax_ns=tax_ns,
        tax_frac=tax_ns if isinstance(tax_ns, Missing) else tax_ns / steps.windows.total_ns,
        layers=number,
        rows=moe_rows(measured, members, _kinds(evidence)),
        by_layer=by_layer,
    )
    return MoeLedger(moe, counted(rank, steps, lanes, passes), work)


def _refused(rank: RankTimeline, steps: Steps) -> Missing | None:
    rows = rank.activities
    replayed = rows.is_replay & (ns_in(rows, steps.windows) > 0)
    opaque = rank.opaque_graph_frac > HALF_A_WALL.value
    if replayed.any() or opaque or not rank.has_kernels:
        reason = (
            "graph replays were recorded whole or not at all, and parts of the MoE layers may be "
            "in them"
        )
        return rank.lacks(reason, "graphs")
    return None


def _unclear(rank: RankTimeline, passes: Passes) -> Missing | None:
    """Set where passes do not close: launches of two microbatches in one sequence.

    Where a recording begins and ends it may cut the first and the last pass of each lane.
    """
    broken = ~passes.whole | (passes.kind == UNTOLD)
    first = begins(passes.lane)
    mixed = broken & ~first & ~np.append(first[1:], True)
    if summed(~mixed) >= NEARLY_ALL.value * len(passes):
        return None
    count = f"{broken.sum()} of {len(passes)}"
    reason = f"{count} passes through a MoE layer do not close, or have no known direction"
    return rank.lacks(reason, "launch_threads")


def _untold_recompute(passes: Passes, recompute: Recompute) -> Missing | None:
    """Set where more passes run forward than backward, and nobody can say which of them run
    again.
    """
    forward, backward = summed(passes.kind == Kind.FORWARD), summed(passes.kind == Kind.BACKWARD)
    if recompute.missing is None or not backward or NEARLY_ALL.value * forward <= backward:
        return None
    reason = (
        f"{forward} forward and {backward} backward passes, and which of them run again is unknown"
    )
    return gap(f"{reason}: {recompute.missing.reason}", recompute.missing.cure)


def _layers(rank: RankTimeline, steps: Steps, lanes: Lanes, passes: Passes) -> IntArray | Missing:
    if not len(passes):
        reason = (
            "no expert all-to-all is known that could mark a pass: modules are known by their "
            "names alone"
        )
        return gap(reason, f"none for a run on one rank; else {rank.cure('ranges')}")
    if not steps.used:
        return gap(
            "without steps the passes of a step cannot be counted",
            "record whole steps, or name a range with --nvtx",
        )
    return layers_of(rank, borders_of(steps), lanes, passes)


def _no_tax(
    resolution: Resolution, members: Membership, absent: AbsentPieces | Missing
) -> Missing | None:
    for open_ in resolution.unresolved:
        if open_.kind == "sendrecv_unresolved":
            return gap(f"some SendRecv could be expert traffic: {open_.reason}", open_.cure)
    gathers = resolution.of_kind("other_comm") & np.isin(resolution.operation, _GATHERS)
    if gathers.any() and not resolution.of_kind(*PAYLOAD_KINDS).any():
        return gap(
            "gathers and scatters of unknown purpose could be the dispatcher's",
            "record NVTX ranges (Megatron-LM: --nvtx-ranges)",
        )
    if (resolution.operation == OPERATIONS.index("fused")).any():
        return gap(
            "dispatch, experts and combine run in one kernel",
            "none: the kernel does not record its phases",
        )
    if not members.are("permute", "unpermute").any():
        return gap(
            "tokens are routed, but no kernel has a name that shows a permutation",
            "run with fused permutes (Megatron-LM: --moe-permute-fusion)",
        )
    if isinstance(absent, Missing):
        return gap(f"waits for token counts: {absent.reason}", absent.cure)
    return None


def _kinds(evidence: Evidence) -> IntArray:
    """Kind of every activity by itself, shape (n,)."""
    backward = evidence.autograd | (evidence.phase == PHASES.index("bwd"))
    kind = np.where(backward, CODE(Kind.BACKWARD), CODE(Kind.FORWARD))
    kind[evidence.recomputed] = Kind.RECOMPUTE
    return kind
