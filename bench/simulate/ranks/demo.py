"""The run that `moe-diag demo ranks` shows: eight ranks on two nodes, of which one is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.simulate.knobs import Knobs
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, Extent, RanksRun
from bench.simulate.ranks.happened import simulate
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.recorded import Capture, write_ranks

_KNOBS: Final = Knobs(
    step_count=3, layer_count=2, microbatch_count=1, attention_us=200, dense_gemm_us=250,
    expert_gemm_us=420, small_kernel_us=10, dispatch_us=90, gradient_us=60, python_us=2, api_us=2,
    data_stall_ms=0.05, optimizer_us=300,
)  # fmt: skip
DEMO: Final = RanksRun(
    seed=8,
    layout=Layout(data=8, expert=8, ranks_per_host=4),
    knobs=_KNOBS,
    cause=Cause.SLOW_DEVICE,
    rank=4,
    strength=1.23,
    extent=Extent.NODE,
)


def write_demo(folder: Path) -> list[Path]:
    """The recordings of its ranks, each named by node and rank."""
    written = write_ranks(simulate(DEMO), folder, draw_clocks(DEMO), Capture(mpi=True))
    named = []
    for one in written:
        (rank,) = one.ranks
        named.append(one.path.rename(folder / f"node{DEMO.layout.host(rank)}_rank{rank}.sqlite"))
    return named
