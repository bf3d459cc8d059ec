"""Whether a replay means anything: two proofs, and what is refused or doubted where they fail."""

from dataclasses import dataclass
from typing import Final

from traces.cures import cure
from traces.limits import Limit
from traces.missing import Missing
from traces.spelling import percent

OFF: Final = Limit(
    0.10,
    "fraction of the window",
    "ours: a replay that is further off without its unexplained waits explains too little for any cost",
)
BUSY: Final = Limit(0.9, "fraction of the window", "ours: the step waits for a GPU as busy as that")
ELASTIC: Final = Limit(
    0.4,
    "fraction saved when all GPU work halves",
    "ours: where a busy window shrinks less, the host's waits are not understood; real recordings gave 0.43 "
    "to 0.50 where they were, 0.06 where not",
)
UNSEEN: Final = Limit(
    0.10,
    "fraction of the window",
    "ours: as much as a wall; real recordings whose host was nearly the limit had up to 0.08, about as much "
    "as ended 20 us later by chance",
)


@dataclass(frozen=True, slots=True)
class Proofs:
    """Whether the replay means anything.

    `residual_free_error_frac`: by how much the window is missed when waits over 2 us that no constraint
    explains are set to none; `unexplained_frac`: those waits, as part of the window. `elastic_frac`: how much
    the window shrinks when all GPU work halves. `unseen_frac`: the most of the host's time, as part of the
    window, that may be waiting for GPU work unseen.
    """

    residual_free_error_frac: float
    elastic_frac: float
    unexplained_frac: float
    unseen_frac: float = 0.0

    @property
    def held_by_host(self) -> bool:
        """Whether a window that hardly shrinks with GPU work is held by what the host itself does.

        Then its waits are understood, and it is the next limit.
        """
        return max(self.unseen_frac, self.unexplained_frac) < UNSEEN.value


def refusal(proofs: Proofs, kind: str) -> Missing | None:
    """Set where the first proof fails: costs are then not to be used. `kind`: of the trace."""
    if proofs.residual_free_error_frac <= OFF.value:
        return None
    reason = (
        f"a replay without unexplained waits misses the window by {percent(proofs.residual_free_error_frac)}"
        ": what GPU work waits for is not in the trace"
    )
    return Missing("replay", reason, cure("events", kind))


def doubt(proofs: Proofs, busy_frac: float, kind: str) -> Missing | None:
    """Set where the second proof fails: a busy GPU's window that hardly shrinks with its work.

    Then some of the host's time may be waiting unseen, so that a small cost is not known to be small; not
    where the host's own work is seen to take that time.
    """
    if busy_frac < BUSY.value or proofs.elastic_frac >= ELASTIC.value or proofs.held_by_host:
        return None
    reason = (
        f"the GPU is busy {percent(busy_frac)} of the window, yet a replay with all GPU work halved saves "
        f"only {percent(proofs.elastic_frac)} of it: what waits for what is not understood"
    )
    return Missing("replay", reason, cure("host_waits", kind))
