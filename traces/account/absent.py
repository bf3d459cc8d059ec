"""Time without compute in pieces: each with its reason, the work waited for and the kernel that ended it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.device import DevicePieces
from traces.account.host import CAUSES, HostPieces
from traces.account.pieces import Pieces
from traces.columns import CODE, PLACE, IntArray
from traces.timeline import KEYS, Activities, Bucket

_OTHERS: Final = (
    "launch_latency.arrival",
    "launch_latency.kernel_gap",
    "graph_opaque",
    "dependency_stalled",
    "trailing",
)
REASONS: Final = (
    *(f"launch_starved.{cause}" for cause in CAUSES),
    *(f"blocking.{kind}" for bucket in (Bucket.COMM, Bucket.COPY) for kind in KEYS[bucket]),
    *_OTHERS,
)
"""Every reason that time without compute can have, in the words of the document."""

_CODE: Final = {name: code for code, name in enumerate(REASONS)}
_BLOCKING: Final = {Bucket.COMM: len(CAUSES), Bucket.COPY: len(CAUSES) + len(KEYS[Bucket.COMM])}
_NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class AbsentPieces:
    """Disjoint pieces, shape (n,), that hold all time without compute in the windows; they may reach beyond.

    `reason` indexes `REASONS`. `work` is the place in `Activities` of the work that was waited for, `kernel`
    that of the kernel judged; -1 where there is none.
    """

    start_ns: IntArray
    end_ns: IntArray
    reason: IntArray
    work: IntArray
    kernel: IntArray


class Notes:
    """The account, taken down piece by piece."""

    def __init__(self, rows: Activities) -> None:
        self._rows = rows
        self._noted: list[list[IntArray]] = [[] for _ in AbsentPieces.__slots__]

    def pieces(self) -> AbsentPieces:
        """What was taken down, once: it is given away column by column, for twice the whole is much."""
        return AbsentPieces(*(_whole(column) for column in self._noted))

    def trailing(self, pieces: Pieces) -> None:
        """No kernel ended these."""
        self._note(pieces, np.full(len(pieces), _CODE["trailing"]))

    def opaque(self, pieces: Pieces) -> None:
        """These lie between two nodes of one graph."""
        self._note(pieces, np.full(len(pieces), _CODE["graph_opaque"]))

    def host(self, left: HostPieces) -> None:
        """The host was not there yet."""
        self._note(left.pieces, left.cause)

    def work(self, pieces: Pieces, work: IntArray) -> None:
        """Work that was waited for ran."""
        bucket = self._rows.bucket[work]
        base = np.where(bucket == Bucket.COMM, _BLOCKING[Bucket.COMM], _BLOCKING[Bucket.COPY])
        self._note(pieces, base + self._rows.key[work], work)

    def device(self, part: DevicePieces) -> None:
        """After launch and producers: latency, or nobody can say."""
        left = part.work < 0
        latency = np.where(part.arrival, _CODE["launch_latency.arrival"], _CODE["launch_latency.kernel_gap"])
        reason = np.where(part.arrival | part.gap, latency, _CODE["dependency_stalled"])
        self._note(part.pieces.take(left), reason[left])

    def _note(self, pieces: Pieces, reason: IntArray, work: IntArray | None = None) -> None:
        awaited = np.full(len(pieces), _NOTHING, dtype=PLACE) if work is None else work.astype(PLACE)
        row: tuple[IntArray, ...] = (pieces.start_ns, pieces.end_ns, reason.astype(CODE), awaited)
        for column, part in zip(self._noted, (*row, pieces.kernel.astype(PLACE)), strict=True):
            column.append(part)


def _whole(parts: list[IntArray]) -> IntArray:
    """The parts as one, which are gone then."""
    result = np.concatenate(parts)
    parts.clear()
    return result
