"""The whole failure table, and the words of the mends that are no fix of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.rules.failures.failure import Row
from heuristics.rules.failures.graph_rows import GRAPH_ROWS
from heuristics.rules.failures.moe_rows import MOE_ROWS
from heuristics.rules.failures.overlap_rows import OVERLAP_ROWS
from heuristics.rules.failures.run_rows import RUN_ROWS

ROWS: Final[tuple[Row, ...]] = (*OVERLAP_ROWS, *GRAPH_ROWS, *MOE_ROWS, *RUN_ROWS)

MENDS: Final[Mapping[str, str]] = {
    "CFG-1": "leave expert features out of a dense model",
    "CFG-2": "set the base precision to BF16",
    "CFG-3": "switch shared-expert overlap off",
    "CFG-4": "at most one MTP layer",
    "CFG-5": "one of two exclusive overlaps",
    "CFG-6": "an unpacked data path",
    "CFG-7": "Transformer Engine's layers",
    "CFG-8": "fused gradient accumulation",
    "CFG-9": "no attention bias in graphs",
    "CFG-10": "NCCL_GRAPH_REGISTER=0",
    "CFG-11": "Transformer Engine's random number tracker",
    "CFG-12": "no checks for NaN",
    "CFG-13": "one spelling of the captured modules",
    "CFG-14": "padded sequences",
    "CFG-15": "warm-up before the capture",
    "CFG-16": "no graphs beside this sharding",
    "CFG-17": "CUDA_GRAPHS_USE_NODE_PRIORITY=1",
    "CFG-18": "dispatcher type and backend together",
    "CFG-19": "no padding to capacity",
    "CFG-20": "alltoall beside a fake process group",
    "CFG-21": "router probabilities in FP32",
    "CFG-22": "a score function that expert bias takes",
    "CFG-23": "router padding only where it is taken",
    "CFG-24": "sequence parallelism",
    "CFG-25": "NVTE_CPU_OFFLOAD_V1=1",
    "CFG-26": "EP overlap on comm_overlap",
    "ENV-1": "PyTorch 2.6.0 or newer",
    "ENV-2": "a newer Megatron-Core",
    "ENV-3": "a newer Transformer Engine",
    "ENV-4": "install or update the dispatcher's package",
    "ENV-5": "ranks, network and NCCL",
    "CAP-1": "measure without the profiler",
}
"""Id outside the catalogue -> what it is."""
