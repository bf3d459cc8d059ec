"""COM-12: DeepEP's way onto the network.

Changes how DeepEP's kernels reach the network cards: GPUs post the transfers themselves (IBGDA) instead of a
thread of the host, and each GPU uses the card beside it. Helps only where DeepEP's kernels cross nodes and
move data. The cluster's administrators must have set the fabric up for it.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, dispatched_by, expert_parallel, holds, mostly_moving
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_IBGDA: Final = "env.NVSHMEM_IB_ENABLE_IBGDA"


def change(run: Run) -> Change:
    """Environment of every rank; which card is beside which GPU only the machine tells."""
    del run
    return Change(
        {_IBGDA: "true", "env.NVSHMEM_ENABLE_NIC_PE_MAPPING": "1"},
        launch=(
            "(and DEEP_EP_DEVICE_TO_HCA_MAPPING with the card of each GPU, as nvidia-smi topo -m shows them)",
        ),
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """DeepEP across nodes, moving data, on a fabric that allows it."""
    return (
        *already(run, _IBGDA),
        expert_parallel(run),
        dispatched_by(run, "DeepEP dispatches tokens", "deepep", blocks=True),
        holds(
            "DeepEP kernels cross nodes",
            run.active.internode,
            told_by="record kernel names of a run across nodes",
            blocks=True,
        ),
        mostly_moving(run),
        holds("the fabric is set up for GPUDirect Async", None, told_by="ask who runs the cluster"),
    )


FIX: Final = Fix(
    id="COM-12",
    wall="communication",
    title="Let DeepEP send from the GPU to the network (IBGDA)",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "no matter of Megatron's. DeepEP's main has no fallback to transfers by the host; NVSHMEM 3.5 "
        "chooses the transport by itself, with a DeepEP built for it"
    ),
    gains=(
        Gain(
            "about 10 % more across nodes, roughly 55 GB/s; cluster and model not named",
            "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        ),
    ),
    side_effects=("a wrong list of cards sends all traffic through one of them",),
    verify="deep_ep::internode kernels get shorter, and every network card carries as much",
    sources=("Megatron-Bridge, docs/performance-guide.md at 067f987d",),
)
