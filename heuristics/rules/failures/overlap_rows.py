"""EP overlap, delayed weight gradients, TP overlap: the guide's failure table, and what code adds to it."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, refused, said

_SKILL: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987d"

OVERLAP_ROWS: Final[tuple[Row, ...]] = (
    refused(
        "connections-not-one",
        "ep_overlap",
        "before Blackwell, TP or CP wants one hardware queue, and Megatron-LM insists unless EP overlap or "
        "FSDP is on",
        "env.CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_MAX_CONNECTIONS=1",
        "COM-13",
        {"env.CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    ),
    refused(
        "connections-one",
        "ep_overlap",
        "FSDP wants more than one hardware queue",
        "env.CUDA_DEVICE_MAX_CONNECTIONS",
        "leave CUDA_DEVICE_MAX_CONNECTIONS unset, or above 1",
        "COM-13",
        {"env.CUDA_DEVICE_MAX_CONNECTIONS": "8"},
    ),
    Row(
        "overlap-energon-off",
        "ep_overlap",
        "skipped",
        "Energon's native packing switches EP overlap and delayed weight gradients off",
        "packing_buffer_size of the data set, and no layer_<i>f-layer_<j>b range in a trace",
        "an unpacked data path, or accept the step without overlap",
        "CFG-6",
        said("overlap-energon-off"),
    ),
    Row(
        "tp-overlap-off",
        "tp_overlap",
        "skipped",
        "TP overlap was switched off: TP below 2, no sequence parallelism, or no Transformer Engine",
        "tensor_model_parallel_size, sequence_parallel, and the word in the warning",
        "with TP of 2 and more set sequence_parallel; with TP of 1 there is nothing to overlap",
        "COM-5",
        said("tp-overlap-off"),
        {"sequence_parallel": True},
    ),
    Row(
        "tp-overlap-layer-off",
        "tp_overlap",
        "skipped",
        "Transformer Engine has no user buffer for a layer, which runs without TP overlap",
        "which layers have a bulk or pipelined overlap in tp_comm_overlap_cfg",
        "name a configuration for that layer, or accept it",
        "COM-5",
        said("tp-overlap-layer-off"),
    ),
    refused(
        "tp-overlap-no-sp",
        "tp_overlap",
        "TP overlap without sequence parallelism",
        "sequence_parallel",
        "set sequence_parallel",
        "COM-5",
        {"sequence_parallel": True},
    ),
)
