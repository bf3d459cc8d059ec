"""What a replay looks at: of a long recording the activities of some stretches, and what those wait for."""

from dataclasses import dataclass, replace

import numpy as np

from traces.account.device import Queueing
from traces.account.host_calls import NONE
from traces.account.producers import Producers
from traces.columns import COPY_KINDS, NULL, PLACE, BoolArray, IntArray
from traces.intervals import Spans
from traces.replay.edits import Subject
from traces.replay.graph import happens_in
from traces.timeline import Activities, Bucket, Source


def part_of(subject: Subject, queueing: Queueing, stretches: Spans) -> tuple[Subject, Queueing]:
    """A subject with only what happens in some stretches, and what that waits for; places are among those."""
    happens, producers = happens_in(subject.rank.activities, stretches), queueing.producers
    mask = np.append(happens, False)
    for places in (*producers.place[happens].T, producers.room[happens]):
        mask[places] = True
    mask[NONE] = False
    kept = _Kept(np.flatnonzero(mask), np.where(mask, np.cumsum(mask) - 1, NONE).astype(PLACE))
    found = Producers(
        kept.now[producers.place[kept.place]],
        producers.inferred[kept.place],
        kept.now[producers.room[kept.place]],
    )
    rows = _rows(subject.rank.activities, kept.place, happens)
    some = replace(
        subject,
        rank=replace(subject.rank, activities=rows),
        recomputed=kept.of(subject.recomputed),
        offloaded=kept.of(subject.offloaded),
        resident=kept.of(subject.resident),
        simt=kept.of(subject.simt),
        wide=tuple(replace(one, places=kept.of(one.places)) for one in subject.wide),
    )
    return some, replace(queueing, producers=found)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Places that are kept, in order, and where each place stands `now`: -1 where it is gone, and for -1."""

    place: IntArray
    now: IntArray

    def of(self, places: IntArray) -> IntArray:
        """Where those of some places stand that are kept."""
        now = self.now[places]
        result: IntArray = now[now != NONE]
        return result


def _rows(rows: Activities, places: IntArray, happens: BoolArray) -> Activities:
    """Work that does not happen is kept for its end alone: what it was part of is not there whole."""
    kept, other = rows.take(places), ~happens[places]
    found = {name: getattr(kept, name) for name in Activities.__slots__}
    nothing = {
        "bucket": Bucket.COPY, "key": COPY_KINDS.index("memset"), "source": Source.COPY, "row": 0,
        "name": NONE, "call": NONE, "launch_ns": NULL,
    }  # fmt: skip
    for name, none in nothing.items():
        found[name][other] = none
    return Activities(**found)
