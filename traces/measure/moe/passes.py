"""Layer passes: tokens go to their experts, experts work, tokens come back.

Forward and backward look alike: what moves like a dispatch in backward is the backward of combine.
Passes are read off lanes: what each host thread launched, in order, and the part each activity can
play in a MoE layer, so another microbatch between does not matter. Forward and backward come from
different threads in PyTorch, so even where two microbatches take turns on the GPU, one lane holds
whole layers one after the other. Where no launch was recorded there is one lane, in order of start.
"""

from enum import IntEnum
from typing import Final

import numpy as np

from traces.account.waits import token_count_reads
from traces.arrays import (
    CODE,
    PLACE,
    BoolArray,
    IntArray,
    columns_of,
    none_of,
    shifted,
    summed,
    sums_before,
)
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import begins, in_order, mask_of
from traces.names.kernels import KernelClass
from traces.patterns import compiled
from traces.resolve.communication import communication_of
from traces.resolve.neighbours import Role, launch_order, phase_of_class, role
from traces.resolve.resolution import (
    CONTROL_KIND,
    OPERATIONS,
    PAYLOAD_KINDS,
    PHASES,
    UNTOLD,
    Resolution,
)
from traces.timeline import RankTimeline


def nth_next(at: IntArray, start: IntArray, nth: IntArray) -> IntArray:
    """From each start the n-th place after it, by `next_at`'s answer `at`; the start itself for
    0.
    """
    place = start
    for turn in range(int(nth.max(initial=0))):
        place = np.where(nth > turn, at[np.minimum(place + 1, len(at) - 1)], place)
    return place


def nth_previous(at: IntArray, start: IntArray, nth: IntArray) -> IntArray:
    """From each start the n-th place before it, by `previous_at`'s answer `at`; -1 where there is
    none.
    """
    place = start
    for turn in range(int(nth.max(initial=0))):
        place = np.where(nth > turn, np.where(place < 0, -1, at[place]), place)
    return place


class Part(IntEnum):
    """The part that an activity can play in a MoE layer, by its name or what it was resolved to."""

    NONE = 0
    BORDER = 1
    """Norm, attention, head, optimizer: no MoE layer reaches across them."""
    ROUTER = 2
    MAP = 3
    """Which token goes where: row maps, multi-hot maps, histograms."""
    CONTROL = 4
    COUNTS = 5
    """A small copy to the host."""
    PAYLOAD = 6
    REORDER = 7
    """Permute, unpermute, sort, pad."""
    GROUPED = 8
    GEMM = 9
    ACTIVATION = 10
    CAST = 11
    """Casts and scaling for low precision."""
    GATHER = 12
    """A gather whose purpose was not told."""
    OTHER = 13
    """Other compute: element-wise work, copies by kernels."""


_BORDERS: Final = {"norm", "attention", "rope", "loss", "embedding", "optimizer", "ssm"}
_NO_GEMM: Final = {"grouped_setup", "splitk_reduce"}


@frozen
class Lanes:
    """All activities of a rank, lane after lane, each in order of launch; arrays of shape (n,).

    `order` are places in `Activities`; `lane` numbers the lanes; `part` is a `Part`; `undoes` marks
    reorders that bring tokens back into their own order, as their names say.
    """

    order: IntArray
    lane: IntArray
    part: IntArray
    undoes: BoolArray

    def met(self, *parts: Part) -> IntArray:
        """How many of these parts stand up to each place."""
        return np.cumsum(np.isin(self.part, parts))


def lanes_of(rank: RankTimeline, resolution: Resolution) -> Lanes:
    """Sort the activities of a rank into lanes. `resolution`: what its communication is for."""
    rows = rank.activities
    order = launch_order(rows)
    thread = rows.launch_thread
    if 2 * summed(thread != NULL) <= len(rows):
        thread = np.full(len(rows), NULL)
    order = in_order(order, thread).astype(PLACE)
    undoes = rank.named(lambda name, kernel: role(name, kernel) == Role.UNPERMUTE)
    return Lanes(
        order,
        np.cumsum(begins(thread[order]), dtype=PLACE) - 1,
        _parts(rank, resolution)[order],
        undoes[order],
    )


def _parts(rank: RankTimeline, resolution: Resolution) -> IntArray:
    """Part of each activity, shape (n,)."""
    rows = rank.activities
    part = np.array([*map(_part, rank.classes)], dtype=CODE)[rows.name]
    part[~rows.is_kernel | ~rows.is_compute] = Part.NONE
    part[token_count_reads(rank)] = Part.COUNTS
    gathers = resolution.of_kind("other_comm") & (
        resolution.operation == OPERATIONS.index("all_gather")
    )
    part[resolution.index[gathers]] = Part.GATHER
    part[resolution.index[resolution.of_kind(*PAYLOAD_KINDS)]] = Part.PAYLOAD
    part[resolution.index[resolution.of_kind(CONTROL_KIND)]] = Part.CONTROL
    return part


def _part(kernel: KernelClass) -> Part:
    if kernel.class_ in _BORDERS:
        return Part.BORDER
    if kernel.class_ in ("router", "permute"):
        if kernel.subclass == "map":
            return Part.MAP
        if kernel.class_ == "router":
            return Part.ROUTER
        return Part.REORDER
    if kernel.class_ == "gemm" and kernel.subclass not in _NO_GEMM:
        if kernel.subclass == "grouped":
            return Part.GROUPED
        return Part.GEMM
    if kernel.class_ == "activation" or kernel.subclass == "act_quant":
        return Part.ACTIVATION
    if kernel.class_ == "quantize":
        return Part.CAST
    return Part.OTHER


_TO, _FROM = OPERATIONS.index("dispatch"), OPERATIONS.index("combine")
_BACKWARD_NAME: Final = compiled(r"_bwd|[bB]ackward|_grad")


class Kind(IntEnum):
    """Which pass through a layer it is."""

    FORWARD = 0
    RECOMPUTE = 1
    BACKWARD = 2


@frozen
class PassCount:
    """Passes of one step, each with one dispatch and one combine, over all layers and
    microbatches.
    """

    forward: int
    recompute: int
    backward: int


@frozen
class Evidence:
    """Of each activity, shape (n,) each, what tells the pass: masks but for `phase`, which is in
    `PHASES`.

    `autograd`: launched by a thread of autograd; `recomputed`: in a recomputed stretch; `phase`: as
    its name says; `resolved`: the phase that expert traffic was resolved to. `UNTOLD` where nothing
    tells.
    """

    autograd: BoolArray
    recomputed: BoolArray
    phase: IntArray
    resolved: IntArray


@frozen
class Passes:
    """Passes in order of their lanes, shape (p,): places in `Lanes.order`.

    Tokens leave in [to_first, to_last], come back in [from_first, from_last], both ends included.
    Where the other half lies outside of the recording it is empty, and `whole` is False. `kind` is
    a `Kind`, `UNTOLD` where nothing tells; `lane` is that of `Lanes`.
    """

    to_first: IntArray
    to_last: IntArray
    from_first: IntArray
    from_last: IntArray
    whole: BoolArray
    kind: IntArray
    lane: IntArray

    def __len__(self) -> int:
        return len(self.kind)


def evidence_of(
    rank: RankTimeline, resolution: Resolution, recomputed: IntArray, autograd: BoolArray
) -> Evidence:
    """Gather what tells forward from backward. `recomputed`: places of recomputed activities."""
    rows = rank.activities
    by_name = map(_phase_named, (*rank.columns.kernel_names, ""), rank.classes)
    phase = np.array([*by_name], dtype=CODE)[rows.name]
    phase[resolution.index] = communication_of(rank).phase_by_name()
    resolved = np.full(len(rows), UNTOLD, dtype=CODE)
    resolved[resolution.index] = resolution.phase
    return Evidence(autograd, mask_of(recomputed, len(rows)), phase, resolved)


def _phase_named(name: str, kernel: KernelClass) -> int:
    if kernel.class_ in ("permute", "router", "activation") and _BACKWARD_NAME.search(name):
        return PHASES.index("bwd")
    return phase_of_class(kernel)


def passes_of(lanes: Lanes, resolution: Resolution, evidence: Evidence) -> Passes:
    """Find the layer passes of a rank."""
    operation = np.full(len(lanes.order), UNTOLD, dtype=CODE)
    operation[resolution.index] = resolution.operation
    first, last, way = _groups(lanes, operation[lanes.order])
    crossed = lanes.met(Part.BORDER, Part.ROUTER)[first]
    lane = lanes.lane[first]
    beside = (lane[1:] == lane[:-1]) & (crossed[1:] == crossed[:-1])
    whole = (way == _TO) & np.append(beside & (way[1:] == _FROM), False)
    alone = (way == _FROM) & ~shifted(whole)
    starts = np.flatnonzero((way == _TO) | alone)
    ends = np.where(whole[starts], starts + 1, starts)
    kept, returns = whole[starts], alone[starts]
    to_first, from_last = first[starts], last[ends]
    to_last = np.where(returns, to_first - 1, last[starts])
    from_first = np.where(kept | returns, first[ends], from_last + 1)
    kind = _kinds(lanes, evidence, to_first, from_last)
    return Passes(to_first, to_last, from_first, from_last, kept, kind, lane[starts])


def _groups(lanes: Lanes, operation: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Payload kernels that move one thing: first and last place of each group, and its way.

    Where the way is not resolved: after expert work tokens come back, else they leave.
    """
    worked, ordered = lanes.met(Part.GEMM, Part.GROUPED), lanes.met(Part.REORDER)
    crossed = lanes.met(Part.BORDER, Part.ROUTER)
    reorders = ordered.any()
    groups: list[list[int]] = []
    for at in np.flatnonzero(lanes.part == Part.PAYLOAD).tolist():
        before = groups[-1][1] if groups else at
        near = groups and lanes.lane[at] == lanes.lane[before] and crossed[at] == crossed[before]
        apart = worked[at] > worked[before] and (ordered[at] > ordered[before] or not reorders)
        way = int(operation[at])
        if way not in (_TO, _FROM):
            way = groups[-1][2] if near else _TO
            if near and apart:
                way = _FROM
        if near and not apart and groups[-1][2] == way:
            groups[-1][1] = at
        else:
            groups.append([at, at, way])
    first, last, ways = columns_of(groups, 3)
    return first, last, ways


def _kinds(lanes: Lanes, evidence: Evidence, first: IntArray, last: IntArray) -> IntArray:
    """Kind of each pass: by the thread and the names between its first and its last payload
    kernel.
    """
    phase, expected = evidence.phase[lanes.order], evidence.resolved[lanes.order]
    forward = _any_within(phase == PHASES.index("fwd"), first, last)
    backward = _any_within(phase == PHASES.index("bwd"), first, last)
    resolved = _any_within(expected == PHASES.index("bwd"), first, last)
    traffic = _any_within(expected != UNTOLD, first, last)
    payload = lanes.part == Part.PAYLOAD
    again = _any_within(evidence.recomputed[lanes.order] & payload, first, last) & ~backward
    by_autograd = evidence.autograd[lanes.order[first]]
    by_thread = bool(evidence.autograd.any())
    again |= by_autograd & forward & ~backward
    again &= ~(by_autograd & _with_gradients(lanes, by_autograd, first, last))
    back = by_autograd if by_thread else backward | (resolved & ~forward)
    only_forward = not (evidence.phase == PHASES.index("bwd")).any()
    known = forward | backward | traffic | by_thread | only_forward
    kind = np.where(again, Kind.RECOMPUTE, np.where(back, Kind.BACKWARD, Kind.FORWARD))
    return np.where(known | again, kind, UNTOLD).astype(CODE)


def _with_gradients(
    lanes: Lanes, by_autograd: BoolArray, first: IntArray, last: IntArray
) -> BoolArray:
    """Whether a pass has rather twice the GEMMs of a forward pass: two gradients each, and no
    repetition.
    """
    total = sums_before(np.isin(lanes.part, (Part.GEMM, Part.GROUPED)))
    count = total[last + 1] - total[first]
    of_forward = count[~by_autograd & (count > 0)]
    if not len(of_forward):
        return none_of(len(count))
    usual = np.median(of_forward)
    return np.abs(count - 2 * usual) < np.abs(count - usual)


def _any_within(mask: BoolArray, first: IntArray, last: IntArray) -> BoolArray:
    held = sums_before(mask)
    return held[last + 1] > held[first]
