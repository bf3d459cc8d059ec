"""Hardware counters sampled on a GPU, as a trace holds them; every reader of such counters ends here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.columns import IntArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GpuSamples:
    """Samples of one whole GPU, in order of time, arrays of shape (n,); whoever used it is in them.

    A sample covers [start, end), one period unless the next begins earlier, so that a hole in the sampling
    stays a hole. Fractions are 0 to 1 and NaN where a sample lacks the metric. `sm_active_frac` is residency
    (a warp was there), the other two are throughput (an instruction was issued; the tensor pipe worked).
    """

    gpu_id: int
    start_ns: IntArray
    end_ns: IntArray
    sm_active_frac: FloatArray
    sm_issue_frac: FloatArray
    tensor_active_frac: FloatArray

    def __len__(self) -> int:
        return len(self.start_ns)
