"""CMP-6: a look inside the kernels (Nsight Compute).

Changes nothing of the run: it measures single kernels, what stalls them and how near they come to what the
GPU can do, which a timeline cannot show. The last step on this wall, where shapes, fusions and precision are
settled and kernels still fill few SMs or keep tensor cores idle. Kernels are replayed under it, so no time of
such a run means anything.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.run.run import Run


def change(run: Run) -> Change:
    """One rank under Nsight Compute, a few kernels of its matrix work."""
    del run
    return Change(launch=("(one rank: ncu --set full -k regex:gemm -s 200 -c 20 -o kernels COMMAND)",))


FIX: Final = Fix(
    id="CMP-6",
    wall="compute",
    title="Profile the main kernels with Nsight Compute",
    change=change,
    versions="no matter of Megatron's; Nsight Compute of the CUDA release that the run uses",
    side_effects=(
        "it is many times slower, and collectives of other ranks may time out: few kernels, one rank",
        "performance counters may need rights on the machine",
    ),
    verify="which limit stands first in each kernel: memory, tensor cores, or too few blocks",
    sources=("Megatron-Bridge skill perf-nsys-analysis at 067f987d (low kernel speed-of-light)",),
    direct=(),  # it wins nothing by itself
    any_framework=True,
)
