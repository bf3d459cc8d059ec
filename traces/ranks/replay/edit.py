"""What a run is without one cause of lateness: work and transfers of its ranks, to be replayed."""

from collections.abc import Callable, Sequence

from traces.arrays import FloatArray, IntArray
from traces.frozen import frozen
from traces.ranks.replay.beneath import EVERY_KIND
from traces.ranks.replay.chains import Chains
from traces.ranks.summaries.summary import UNKNOWN
from traces.sections.cause import Cause


@frozen
class Edit:
    """A possible cause, and what it takes away. `places`: of the summaries of ranks that it makes
    late, none where nobody can be named.

    `cost_ns`, shape (steps,), is the late ranks' own time beyond like ranks in each step, NaN where
    it is not known. `edited`: own work and transfers of each participation without the cause, shape
    (p,) each. `by_step` names, of each step of the run, the place that was late; empty where it
    is the same in all; `group` is the number of the ranks with more layers. `skipped`: kinds that
    hold nothing up beneath compute. `ordinary`: healthy runs have some of it. `told`: by the
    launches of every step, so that its time need not be sure.
    """

    cause: Cause
    places: tuple[int, ...]
    cost_ns: FloatArray
    edited: Callable[[Chains], tuple[IntArray, IntArray]]
    by_step: tuple[int, ...] = ()
    group: int = UNKNOWN
    skipped: Sequence[int] = EVERY_KIND
    ordinary: bool = False
    told: bool = False
