"""A kernel no rule names that fills much of the windows: a finding of its own, though no wall.

What it is: compute of unknown class. How we tell: by its part of the windows, wall time. What it is not: a
overhead: nothing says that it could be shorter.
"""

from typing import Final

from traces.limits import Limit
from traces.sections.rank import UnknownKernel

UNKNOWN: Final = Limit(
    0.05, "fraction of the window", "ours: half a wall; what the tool cannot name must not be lost in `other`"
)


def is_finding(kernel: UnknownKernel) -> bool:
    """Whether a kernel is to be named among the findings."""
    return kernel.frac > UNKNOWN.value
