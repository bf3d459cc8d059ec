"""How durations of one stream's exchanges vary: a hint to print, never evidence that settles anything.

Expert traffic varies with the routing and pipeline traffic does not, but one rank's kernel time is waiting as
well as moving, and waiting varies for both.
"""

from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.limits import Limit

ENOUGH: Final = Limit(10, "kernels", "ours: a tenth of fewer is less than one kernel")


def spread_frac(duration_ns: IntArray) -> float | None:
    """(90th - 10th percentile) / median of durations, shape (n,); None where they are too few or zero."""
    if len(duration_ns) < ENOUGH.value:
        return None
    low, middle, high = np.percentile(duration_ns, (10, 50, 90))
    return float((high - low) / middle) if middle else None
