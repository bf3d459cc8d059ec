"""CUDA_DEVICE_MAX_CONNECTIONS: how many hardware queues a run wants, which its parts do not agree on."""

from typing import Final

from heuristics.run.run import Run
from traces.limits import Limit

ONE: Final = Limit(
    1,
    "hardware queues",
    "Megatron-LM, megatron/training/arguments.py: asserted before Blackwell with TP or CP above 1, unless "
    "expert all-to-all is overlapped or FSDP runs",
)
SOME: Final = Limit(
    8, "hardware queues", "Megatron-Bridge, scripts/performance/utils/overrides.py: what is left"
)
MANY: Final = Limit(
    32,
    "hardware queues",
    "Megatron-Bridge, scripts/performance/utils/overrides.py: with a flex dispatcher, and on Blackwell",
)


def connections(run: Run, fsdp: bool = False, ep_overlap: bool | None = None) -> int:
    """Queues for the run as it is, or as it would be with Megatron-FSDP or the overlap."""
    capability = run.config.capability
    if capability is not None and capability >= (10, 0):
        return int(MANY.value)
    overlapped = run.active.ep_overlap if ep_overlap is None else ep_overlap
    sharded = fsdp or run.config.on("ddp.use_megatron_fsdp", "use_torch_fsdp2")
    if cut_by_sequence_or_tensor(run) and not overlapped and not sharded:
        return int(ONE.value)
    return int((MANY if run.active.dispatcher in ("deepep", "hybridep") else SOME).value)


def cut_by_sequence_or_tensor(run: Run) -> bool:
    """Whether TP or CP is known to be above 1."""
    context = run.active.cp_active if run.config.cp is None else run.config.cp > 1
    return run.config.tensor_parallel is True or context is True
