"""By how much each rank's own time in a step exceeds that of ranks like it, by what it is spent on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces.columns import FloatArray
from traces.ranks.alike import Alike, excess
from traces.ranks.grid import Grid


@dataclass(frozen=True, slots=True)
class Excess:
    """Time of a rank in a step beyond ranks like it, shape (ranks, steps), NaN where it is not known.

    `dense_ns` is compute without grouped GEMMs.
    """

    dense_ns: FloatArray
    grouped_ns: FloatArray
    host_ns: FloatArray
    loader_ns: FloatArray

    @property
    def by_host_ns(self) -> FloatArray:
        """All that the host is the reason of."""
        result: FloatArray = self.host_ns + np.nan_to_num(self.loader_ns)
        return result

    @property
    def by_device_ns(self) -> FloatArray:
        """All that kernels take longer."""
        result: FloatArray = self.dense_ns + np.nan_to_num(self.grouped_ns)
        return result


def excess_of(grid: Grid, alike: Sequence[Alike]) -> Excess:
    """Hold each rank against those like it, step by step."""
    grouped_ns = np.nan_to_num(grid.grouped_ns)  # a rank without experts has none
    return Excess(
        excess(grid.compute_ns - grouped_ns, alike),
        excess(grid.grouped_ns, alike),
        excess(grid.host_ns, alike),
        excess(grid.loader_ns, alike),
    )
