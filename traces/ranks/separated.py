"""What several ranks separate: waiting for a late rank from data transfer, and how much is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traces.names.kinds import COMM_KINDS
from traces.ranks import parts
from traces.ranks.charge import Charged
from traces.ranks.match import Matched
from traces.ranks.recorded import in_steps
from traces.ranks.summary import RankSummary
from traces.ranks.waits import Waits


@dataclass(frozen=True, slots=True)
class Separated:
    """`late_exposed_ns`: by kind of communication, waiting charged to the cause while surely no compute ran.

    `exposed_ns`: all communication of the ranks in steps, of a recording without steps all of it, while no
    compute ran. `moving_ns`: data transfer by
    kind. `complete_frac`: how much of the recorded communication time is in
    collectives that every rank of their group recorded; None where no communication was recorded.
    """

    late_exposed_ns: Mapping[str, int]
    exposed_ns: int
    moving_ns: Mapping[str, int]
    complete_frac: float | None


def separate(
    summaries: Sequence[RankSummary],
    matched: Matched,
    waits: Waits,
    charged: Charged,
    *,
    all_ranks_seen: bool,
) -> Separated:
    """Add up by kind. `all_ranks_seen`: the number of ranks is known, and none is missing."""
    recorded = matched.recorded
    whole_ns = int((recorded.rows.end_ns - recorded.rows.start_ns).sum())
    if not len(matched):
        return Separated({}, 0, {}, 0.0 if whole_ns else None)
    lasts_ns = matched.end_ns - matched.start_ns
    hidden_ns = lasts_ns - np.clip(matched.exposed_ns, 0, lasts_ns)
    late = parts.spread(charged.of_cause, matched.first)
    inside = parts.spread(charged.counted, matched.first)
    sure_ns = np.where(late, np.maximum(0, waits.wait_ns - hidden_ns), 0)
    sizes = np.array([group.size or 0 for group in matched.groups] + [0], dtype=np.int64)[matched.group]
    complete = all_ranks_seen | ((sizes > 0) & (np.diff(matched.first) >= sizes))
    complete_ns = int(lasts_ns[parts.spread(complete, matched.first)].sum())
    kinds = range(len(COMM_KINDS))
    by_kind = {
        COMM_KINDS[code]: (int(sure_ns[rows].sum()), int(waits.moving_ns[rows & inside].sum()))
        for code in kinds
        if (rows := matched.kind == code).any()
    }
    return Separated(
        {kind: late_ns for kind, (late_ns, _) in by_kind.items() if late_ns},
        int(np.maximum(recorded.rows.exposed_ns, 0)[in_steps(summaries, recorded)].sum()),
        {kind: moving_ns for kind, (_, moving_ns) in by_kind.items() if moving_ns},
        min(1.0, complete_ns / whole_ns) if whole_ns else None,
    )
