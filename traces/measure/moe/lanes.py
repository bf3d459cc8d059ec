"""Lanes: what each host thread launched, in order, and the part each activity can play in a MoE layer.

Forward and backward come from different threads in PyTorch, so even where two microbatches take turns on the
GPU, one lane holds whole layers one after the other. Where no launch was recorded there is one lane, in order
of start.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from traces.account.waits import is_token_count
from traces.columns import CODE, COPY_KINDS, NULL, PLACE, BoolArray, IntArray
from traces.names.kernels import UNNAMED, KernelClass, classify_kernel
from traces.resolve.neighbours import Role, launch_order, role
from traces.resolve.resolution import CONTROL_KIND, OPERATIONS, PAYLOAD_KINDS, Resolution
from traces.timeline import Bucket, RankTimeline, Source


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


@dataclass(frozen=True, slots=True)
class Lanes:
    """All activities of a rank, lane after lane, each in order of launch; arrays of shape (n,).

    `order` are places in `Activities`; `lane` numbers the lanes; `part` is a `Part`; `undoes` marks reorders
    that bring tokens back into their own order, as their names say.
    """

    order: IntArray
    lane: IntArray
    part: IntArray
    undoes: BoolArray

    def places(self, *parts: Part) -> IntArray:
        """Where in the order these parts stand, ascending."""
        return np.flatnonzero(np.isin(self.part, parts))


def lanes_of(rank: RankTimeline, resolution: Resolution) -> Lanes:
    """Sort the activities of a rank into lanes. `resolution`: what its communication is for."""
    rows = rank.activities
    order = launch_order(rows)
    thread = rows.launch_thread
    if 2 * int((thread != NULL).sum()) <= len(rows):
        thread = np.full(len(rows), NULL, dtype=np.int64)
    order = order[np.argsort(thread[order], kind="stable")].astype(PLACE)
    new = np.concatenate(([False], np.diff(thread[order]) != 0))
    names = rank.columns.kernel_names
    undoing = [role(name, classify_kernel(name)) == Role.UNPERMUTE for name in names]
    undoes = np.array([*undoing, False], dtype=np.bool_)[rows.name]
    return Lanes(order, np.cumsum(new, dtype=PLACE), _parts(rank, resolution)[order], undoes[order])


def _parts(rank: RankTimeline, resolution: Resolution) -> IntArray:
    """Part of each activity, shape (n,)."""
    rows = rank.activities
    classes = (*map(classify_kernel, rank.columns.kernel_names), UNNAMED)
    by_name = np.array([_part(kernel) for kernel in classes], dtype=CODE)
    compute = (rows.source == Source.KERNEL) & (rows.bucket == Bucket.COMPUTE)
    part = by_name[rows.name]
    part[~compute] = Part.NONE
    part[_small_reads(rank)] = Part.COUNTS
    gathers = resolution.of_kind("other_comm") & (resolution.operation == OPERATIONS.index("all_gather"))
    part[resolution.index[gathers]] = Part.GATHER
    part[resolution.index[resolution.of_kind(*PAYLOAD_KINDS)]] = Part.PAYLOAD
    part[resolution.index[resolution.of_kind(CONTROL_KIND)]] = Part.CONTROL
    return part


def _small_reads(rank: RankTimeline) -> BoolArray:
    rows = rank.activities
    small = (rows.bucket == Bucket.COPY) & (rows.key == COPY_KINDS.index("memcpy_d2h"))
    sizes = rank.columns.copies.size_bytes
    small[small] = is_token_count(sizes[rows.row[small]])
    return np.asarray(small, dtype=np.bool_)


def _part(kernel: KernelClass) -> Part:
    if kernel.class_ in _BORDERS:
        return Part.BORDER
    if kernel.class_ in ("router", "permute"):
        if kernel.subclass == "map":
            return Part.MAP
        return Part.ROUTER if kernel.class_ == "router" else Part.REORDER
    if kernel.class_ == "gemm" and kernel.subclass not in _NO_GEMM:
        return Part.GROUPED if kernel.subclass == "grouped" else Part.GEMM
    if kernel.class_ == "activation" or kernel.subclass == "act_quant":
        return Part.ACTIVATION
    if kernel.class_ == "quantize":
        return Part.CAST
    return Part.NONE if kernel.class_ == "comm" else Part.OTHER
