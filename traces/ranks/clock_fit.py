"""How the clock of a recording stands to the one clock of a run."""

from dataclasses import dataclass

import numpy as np

from traces.columns import IntArray


@dataclass(frozen=True, slots=True)
class ClockFit:
    """A clock, by its fingerprint: `offset_ns` ahead at its time `base_ns`, and it gains `drift_ppm`."""

    clock: int
    base_ns: int
    offset_ns: int
    drift_ppm: float

    def time_of(self, own_ns: int) -> int:
        """A time of this clock on the one clock."""
        return own_ns - self.offset_ns - round((own_ns - self.base_ns) * self.drift_ppm * 1e-6)

    def times_of(self, own_ns: IntArray) -> IntArray:
        """The same of many times."""
        gained = np.rint((own_ns - self.base_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        result: IntArray = own_ns - self.offset_ns - gained
        return result
