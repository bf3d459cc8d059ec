"""A window without steps that holds few kernels is a test of something, and no run that could be judged."""

from collections.abc import Sequence
from typing import Final

from traces.cures import cure
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing

KERNELS: Final = Limit(
    16,
    "kernels",
    "ours: fewer, without a step, are a test of something; one layer of experts takes 25 to 40, and what "
    "slows it was right in each of four recordings of others",
)


def too_few(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why no wall is judged where each rank is one window of few kernels; a window the user gave is judged.

    A graph replay that was recorded whole counts as one kernel.
    """
    most = max(measurements, key=_count)
    if _count(most) >= KERNELS.value or any(rank.steps.source != "none" for rank in measurements):
        return None
    held = [(most.kernel_count, "kernel"), (most.replay_count, "graph replay")]
    named = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in held if count)
    reason = f"{named} and no step: too few to judge a run by"
    return Missing("walls", reason, cure("whole_steps", measurements[0].kind))


def _count(rank: RankMeasurements) -> int:
    return rank.kernel_count + rank.replay_count
