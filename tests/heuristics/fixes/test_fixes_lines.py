"""Which lines each card gives to paste, by what runs, by release and by GPU."""

from __future__ import annotations

from typing import Any, Final

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.run.run import Run
from tests.doubles.fixes import complete, given, shows

SEED: Final[dict[str, Any]] = {"gpu": "H100", "ep": 64, "tp": 1, "guidance": "seed", "flex_package": True}
FULL: Final = Observed(
    moe=True, grouped_gemm=True, precision="bf16", recompute_full=True, offload=False, graph_frac=0.0
)
ALLTOALL: Final = Observed(dispatcher="alltoall")
HYBRIDEP: Final = Observed(dispatcher="hybridep")
DEEPEP: Final = Observed(ep_overlap=True, dispatcher="deepep")
MOE: Final = Observed(moe=True)
SEGMENTS: Final = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
LM, BRIDGE, HARNESS, ENV = "megatron_lm", "megatron_bridge", "bridge_harness", "environment"
EXACTLY: Final[list[tuple[str, Run, str, tuple[str, ...]]]] = [
    ("HST-3", given(MOE, routing="dropless", packed_sequences=False), LM,
     ("--cuda-graph-impl transformer_engine", "--cuda-graph-modules moe_router moe_preprocess",
      "--te-rng-tracker")),
    ("HST-3", given(MOE, routing="dropless", packed_sequences=False), ENV, ("NCCL_GRAPH_REGISTER=0",)),
    ("HST-4", shows(moe=False), LM, ("--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl native")),
    ("HST-4", given(precision="bf16"), ENV, ()),
    *(("COM-1", given(Observed(dispatcher=name), gpu=gpu), ENV, (f"CUDA_DEVICE_MAX_CONNECTIONS={queues}",))
      for name, gpu, queues in (("alltoall", "H100", 8), ("hybridep", "H100", 32), ("alltoall", "B200", 32))),
    ("COM-2", given(ALLTOALL, **SEED), HARNESS, ("--moe_flex_dispatcher_backend deepep",)),
    ("COM-2", given(Observed(dispatcher="deepep"), stage="bring_up"), LM,
     ("--moe-token-dispatcher-type alltoall",)),
    ("COM-3", shows(dispatcher="deepep"), LM, ("--moe-flex-dispatcher-num-sms 24",)),
    ("COM-3", given(Observed(dispatcher="deepep"), core_version="0.18.0"), LM, ("--moe-deepep-num-sms 24",)),
    ("COM-3", given(HYBRIDEP, bridge_version="0.5.0"), LM, ("--moe-hybridep-num-sms 32",)),
    ("COM-3", given(HYBRIDEP, gpu="H100", ep=16), ENV,
     ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", "USE_MNNVL=0")),
    ("COM-5", given(gpu="H100"), ENV, ("CUDA_DEVICE_MAX_CONNECTIONS=1",)),
    ("COM-5", given(gpu="B200"), ENV, ()),
    *(("COM-10", given(ep=ep, nvlink_domain=domain), LM,
       (f"--expert-model-parallel-size {fitting}", "--expert-tensor-parallel-size 1"))
      for ep, domain, fitting in ((64, 8, 8), (12, 8, 6), (7, 4, 1))),
    ("MEM-1", shows(graph_frac=0.0), ENV, (SEGMENTS,)),
    ("MEM-1", shows(graph_frac=0.5), ENV, (SEGMENTS, "NCCL_GRAPH_REGISTER=0")),
    ("MEM-1", Run(), ENV, (SEGMENTS, "NCCL_GRAPH_REGISTER=0")),
    ("MEM-1", given(graph_impl="none"), ENV, (SEGMENTS,)),
    ("MEM-2", given(FULL, family="dsv3"), LM,
     ("--recompute-granularity selective", "--recompute-modules moe_act layernorm mla_up_proj")),
    ("MEM-2", given(FULL, family="dsv3"), BRIDGE,
     ("model.recompute_granularity=selective", "model.recompute_modules=[moe_act,layernorm,mla_up_proj]",
      "model.recompute_method=null", "model.recompute_num_layers=null")),
    ("MEM-4", given(gpu="A100"), LM, ()),
    ("MEM-4", given(MOE, gpu="H100", stage="tuned", precision="bf16"), HARNESS, ("--compute_dtype fp8_sc",)),
    ("MEM-6", given(Observed(offload=True), core_version="0.18.2"), LM, ("--offload-modules expert_fc1",)),
    ("MEM-6", given(Observed(offload=True), core_version="0.19.0"), LM,
     ("--activation-offload-fraction 0.5",)),
    ("MEM-8", given(Observed(moe=False), gpu="H100", ep=1, pp=2), HARNESS,
     ("--pipeline_model_parallel_size 4",)),
    ("MEM-8", complete(), LM, ("--pipeline-model-parallel-size 4",)),
    ("MEM-10", complete(), ENV, ("CUDA_DEVICE_MAX_CONNECTIONS=8",)),
    ("COM-6", complete(), LM, ("--num-virtual-stages-per-pipeline-rank 6",)),
    ("CMP-1", Run(), LM, ("--moe-grouped-gemm",)),
    ("CMP-4", given(Observed(moe=False), gpu="H100", tp=2, ep=1), BRIDGE, ()),
    ("CMP-5", given(DEEPEP, core_version="0.18.0"), LM, ("--moe-deepep-num-sms 16",)),
]  # fmt: skip


@pytest.mark.parametrize(("number", "run", "how", "lines"), EXACTLY)
def test_a_card_gives_these_lines(number: str, run: Run, how: str, lines: tuple[str, ...]) -> None:
    assert getattr(CATALOGUE[number].knobs(run), how) == lines


@pytest.mark.parametrize(("gpu", "share"), [("GB200", 2), ("VR200", 2), ("H100", 4), ("B200", 4)])
def test_grace_has_two_gpus_a_numa_node_and_x86_four(gpu: str, share: int) -> None:
    (command,) = CATALOGUE["HST-1"].knobs(Run(given=Given(gpu=gpu))).environment
    assert command.startswith(f"numactl --cpunodebind=$((SLURM_LOCALID/{share}))")
