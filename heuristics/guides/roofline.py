"""What would move a class of kernel, by the lower of the two roofs that it stands under."""

from heuristics.words import say
from traces.sections.rates import RoofLimit


def what_moves(limit: RoofLimit) -> str:
    """What raises the rate of kernels whose lower roof is this one."""
    return say(f"rates.{limit}")
