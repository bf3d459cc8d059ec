"""What to do about each cause that makes ranks wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from traces.ranks.cause import Cause

REPAIRS: Final[Mapping[Cause, str]] = {
    Cause.SLOW_DEVICE: "Check the GPU: clocks, throttling, power limit, ECC (nvidia-smi -q). "
    "Exclude the node if the GPU stays slow.",
    Cause.SLOW_HOST: "Check the host: CPU binding, other processes, CPU frequency, garbage collection.",
    Cause.SLOW_LINK: "Check the links of this rank: NIC, cables, switch ports, topology (NCCL_DEBUG=INFO).",
    Cause.ROUTING_IMBALANCE: "Balance the routing (COM-11); a faster link or another GPU does not help.",
    Cause.ROTATING_JITTER: "No rank is the cause. Check what interrupts all hosts: garbage collection, "
    "other processes, storage.",
    Cause.DATA_LOADER: "Check the data loader of this rank: workers, storage, prefetching.",
    Cause.PIPELINE_IMBALANCE: "Move layers from the longest pipeline stage to the others.",
    Cause.NONE: "",
}
"""Ours: what an administrator looks at first, by what was observed."""
