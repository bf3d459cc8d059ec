"""Which lines each card gives to paste, by what runs, by release and by GPU."""

from __future__ import annotations

from typing import Any, Final

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import sentences
from heuristics.run.run import Run
from tests.doubles.fixes import complete, configured, given, shows

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
    ("COM-2", given(Observed(dispatcher="deepep"), stage="bring_up"), HARNESS,
     ("--moe_flex_dispatcher_backend None",)),
    ("COM-3", shows(dispatcher="deepep"), LM, ("--moe-flex-dispatcher-num-sms 24",)),
    ("COM-3", given(Observed(dispatcher="deepep"), core_version="0.18.0"), LM, ("--moe-deepep-num-sms 24",)),
    ("COM-3", given(Observed(dispatcher="deepep"), core_version="0.18.0"), BRIDGE,
     ("model.moe_deepep_num_sms=24",)),
    ("COM-3", given(HYBRIDEP, bridge_version="0.5.0"), LM, ("--moe-hybridep-num-sms 32",)),
    ("COM-3", given(HYBRIDEP, gpu="H100", ep=16), ENV,
     ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", "USE_MNNVL=0")),
    ("COM-3", given(HYBRIDEP, gpu="GB200"), ENV, ()),
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
    ("MEM-2", given(FULL, family="dsv3"), HARNESS, ("--recompute_modules moe_act,layernorm,mla_up_proj",)),
    ("MEM-4", given(gpu="A100"), LM, ()),
    ("MEM-4", given(MOE, gpu="H100", stage="tuned", precision="bf16"), HARNESS, ("--compute_dtype fp8_sc",)),
    ("MEM-4", given(MOE, gpu="GB200", stage="tuned", precision="bf16"), HARNESS, ("--compute_dtype fp8_mx",)),
    ("MEM-6", given(Observed(offload=True), core_version="0.18.2"), LM, ("--offload-modules expert_fc1",)),
    ("MEM-6", given(Observed(offload=True), core_version="0.19.0"), LM,
     ("--activation-offload-fraction 0.5",)),
    ("MEM-6", shows(offload=True), LM, ("--activation-offload-fraction 0.5",)),
    ("MEM-8", given(Observed(moe=False), gpu="H100", ep=1, pp=2), HARNESS,
     ("--pipeline_model_parallel_size 4",)),
    ("MEM-8", complete(), LM, ("--pipeline-model-parallel-size 4",)),
    ("MEM-10", complete(), ENV, ("CUDA_DEVICE_MAX_CONNECTIONS=8",)),
    ("COM-6", complete(), LM, ("--num-virtual-stages-per-pipeline-rank 6",)),
    ("CMP-1", Run(), LM, ("--moe-grouped-gemm",)),
    ("CMP-1", Run(), BRIDGE, ("model.moe_grouped_gemm=true",)),
    ("CMP-4", given(Observed(moe=False), gpu="H100", tp=2, ep=1), BRIDGE, ()),
    ("CMP-5", given(DEEPEP, core_version="0.18.0"), LM, ("--moe-deepep-num-sms 16",)),
    ("CMP-5", given(DEEPEP, core_version="0.19.0"), LM, ("--moe-flex-dispatcher-num-sms 16",)),
]  # fmt: skip


@pytest.mark.parametrize(("number", "run", "how", "lines"), EXACTLY)
def test_a_card_gives_these_lines(number: str, run: Run, how: str, lines: tuple[str, ...]) -> None:
    assert getattr(CATALOGUE[number].knobs(run), how) == lines


AMONG: Final[list[tuple[str, Run, str, bool]]] = [  # a line, or the beginning of one, is there or not
    ("HST-2", Run(), "--manual-gc-interval 10", True),
    ("HST-3", given(MOE, routing="dropless"), "model.cuda_graph_modules=[moe_router,moe_preprocess]", True),
    ("HST-3", given(MOE, routing="dropless"), "rng.te_rng_tracker=true", True),
    ("HST-3", given(MOE, routing="dropless"), "--cuda_graph_scope moe_router,moe_preprocess", True),
    *(("HST-3", given(MOE, **{package: version}), line, True)
      for package, version in (("core_version", "0.17.0"), ("bridge_version", "0.4.0"))
      for line in ("--cuda-graph-scope moe_router moe_preprocess",
                   "model.cuda_graph_scope=[moe_router,moe_preprocess]")),
    ("HST-3", given(Observed(moe=True, dispatcher="alltoall"), routing="dropless", router_padding=True),
     "--cuda-graph-modules moe_router", True),
    ("HST-4", shows(router_kernels_per_layer=72, permute_fused=True), "--moe-router-fusion", True),
    ("HST-4", shows(router_kernels_per_layer=72, permute_fused=True), "--moe-permute-fusion", False),
    ("HST-4", Run(HYBRIDEP), "--moe-permute-fusion-into-hybridep", True),
    ("HST-4", given(HYBRIDEP, core_version="0.17.0"), "--moe-permute-fusion-into-hybridep", False),
    ("HST-4", given(precision="mxfp8"), "NVTE_NORM_FWD_USE_CUDNN=1", True),
    *(("HST-7", given(MOE, routing="dropless"), line, True)
      for line in ("--cuda-graph-impl full_iteration", "--moe-paged-stash", "model.moe_paged_stash=true",
                   "--moe-expert-rank-capacity-factor 1.5", "--no-check-for-nan-in-loss-and-grad",
                   "rerun_state_machine.check_for_nan_in_loss=false")),
    *(("HST-7", given(MOE, routing="dropless", core_version="0.17.1"), line, True)
      for line in ("--cuda-graph-impl local", "--cuda-graph-scope full_iteration")),
    *(("HST-7", given(MOE, routing="drop_pad"), line, False)
      for line in ("--moe-paged-stash", "--moe-expert-rank-capacity-factor 1.5")),
    *(("COM-2", given(ALLTOALL, **SEED), line, True)
      for line in ("--moe-token-dispatcher-type flex", "--moe-flex-dispatcher-backend deepep",
                   "model.moe_flex_dispatcher_backend=deepep")),
    *(("COM-2", given(ALLTOALL, **SEED, core_version="0.15.0"), line, True)
      for line in ("--moe-enable-deepep", "model.moe_enable_deepep=true")),
    *(("COM-2", given(ALLTOALL, gpu="GB200", ep=64, tp=1, flex_package=True), line, True)
      for line in ("--moe-flex-dispatcher-backend hybridep", "USE_MNNVL=1",
                   "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=64")),
    ("COM-1", Run(), "--moe_a2a_overlap true", False),
    ("COM-4", given(pp=4, vpp=2), "ddp.align_param_gather=true", True),
    ("COM-4", Run(), "ddp.align_param_gather=true", False),
    ("COM-4", Run(), "--overlap-grad-reduce", True),
    ("COM-4", configured({"comm_overlap.overlap_grad_reduce": False}),
     "comm_overlap.overlap_grad_reduce=true", True),
    ("COM-5", Run(), "--tp-comm-overlap", True),
    ("HST-5", complete({"tensor_model_parallel_size": 2}), "(leave out --sequence-parallel)", True),
    ("HST-5", complete({"tensor_model_parallel_size": 2}), "model.sequence_parallel=false", True),
    ("MEM-2", given(memory_tight=False), "model.recompute_granularity=null", True),
    *(("MEM-4", given(MOE, gpu=gpu, stage="tuned", precision="bf16"), line, True)
      for gpu, recipe, name in (("H100", "blockwise", "fp8_subchannel_scaling"), ("GB200", "mxfp8", "mxfp8"))
      for line in (f"--fp8-recipe {recipe}", f"mixed_precision=bf16_with_{name}_mixed",
       "--moe-router-dtype fp32")),
    ("MEM-4", given(gpu="B200", precision="bf16"), "--reuse-grad-buf-for-mxfp8-param-ag", True),
    ("MEM-4", given(gpu="GB200", precision="mxfp8", stage="tuned", core_version="0.15.0"),
     "--fp4-recipe nvfp4", True),
    ("MEM-4", given(MOE, gpu="H100", core_version="0.15.3"), "--moe-router-padding-for-fp8", True),
    *(("MEM-4", given(MOE, gpu="H100", **release), "--moe-router-padding-for-quantization", True)
      for release in ({"core_version": "0.16.0"}, {"bridge_version": "0.4.0"}, {})),
    ("MEM-5", given(Observed(moe=True, dispatcher="alltoall"), gpu="GB200", ep=64, etp=1, tp=1, stage="tuned",
     flex_package=True), "--moe-flex-dispatcher-backend hybridep", True),
    ("MEM-6", shows(moe=True), "--offload-modules expert_fc1 moe_act", True),
    ("MEM-6", shows(moe=False), "--offload-modules core_attn attn_proj", True),
    ("MEM-6", shows(moe=True, recompute_modules=("moe",)), "--offload-modules core_attn attn_proj", True),
    ("MEM-6", given(te_version="2.9.0"), "NVTE_CPU_OFFLOAD_V1=1", False),
    ("MEM-6", given(te_version="2.10.0"), "NVTE_CPU_OFFLOAD_V1=1", True),
    ("MEM-6", Run(), "NVTE_CPU_OFFLOAD_V1=1", True),
    *(("MEM-7", Run(), line, True) for line in ("--optimizer-cpu-offload",
     "--optimizer-offload-fraction 0.25",
                                                "--use-precision-aware-optimizer")),
    ("MEM-7", Run(), "--offload-optimizer-states", False),
    ("MEM-10", given(core_version="0.13.0"), "--use-custom-fsdp", True),
    ("MEM-10", given(core_version="0.14.0"), "--use-megatron-fsdp", True),
    ("MEM-10", complete({"ddp.average_in_collective": True}), "(leave out --ddp-average-in-collective)",
     True),
    ("MEM-10", complete(), "(leave out --ddp-average-in-collective)", False),
    ("CMP-2", shows(moe=True, permute_fused=True), "--moe-permute-fusion", False),
    ("CMP-2", shows(moe=True, permute_fused=True), "--moe-router-fusion", True),
    *((number,
     complete({"moe_shared_expert_overlap": True}, stage="tuned", flex_package=True, core_version="0.17.0"),
       line, True)
      for number in ("COM-1", "COM-2")
      for line in ("(leave out --moe-shared-expert-overlap)", "model.moe_shared_expert_overlap=false")),
    ("COM-2", complete({"moe_shared_expert_overlap": True}, flex_package=True, core_version="0.18.0"),
     "(leave out --moe-shared-expert-overlap)", False),
]  # fmt: skip


@pytest.mark.parametrize(("number", "run", "line", "is_there"), AMONG)
def test_a_line_is_among_those_of_a_card_or_not(number: str, run: Run, line: str, is_there: bool) -> None:
    knobs = CATALOGUE[number].knobs(run)
    every = (*knobs.megatron_lm, *knobs.megatron_bridge, *knobs.bridge_harness, *knobs.environment)
    assert (line in every) is is_there


TWICE: Final = "Set --micro-batch-size to twice what it is now."
HALF: Final = "Set --tensor-model-parallel-size to half of what it is now."
BY_MODEL: Final = (
    "Set --pipeline-model-parallel-size by the sizes of the model: --config FILE has them, and the number "
    "stands here."
)


@pytest.mark.parametrize(
    ("number", "run", "said"),
    [
        ("HST-5", given(tp=4), ("--tensor-model-parallel-size 2", TWICE)),
        ("HST-5", given(tp=1), (TWICE,)),
        ("HST-5", shows(tp_active=True), (TWICE, HALF)),
        ("HST-5", Run(), (TWICE,)),
        ("MEM-8", given(MOE, gpu="GB200", ep=16, etp=1), ("--expert-model-parallel-size 32",)),
        ("MEM-8", given(MOE, gpu="H100", ep=8, etp=1, pp=2), ("--pipeline-model-parallel-size 4",)),
        ("MEM-8", given(MOE, gpu="H100", ep=4, etp=2, pp=2), ("--pipeline-model-parallel-size 4",)),
        ("MEM-8", Run(MOE), (BY_MODEL,)),
        ("CMP-4", given(MOE, etp=2, ep=4, gpu="H100"), ("--expert-tensor-parallel-size 1",)),
        ("CMP-4", given(MOE, tp=2, ep=4, gpu="H100"), ("--expert-tensor-parallel-size 1",)),
        ("CMP-4", given(MOE, etp=1, ep=4, gpu="H100"), ("--expert-model-parallel-size 8",)),
        ("CMP-4", given(MOE, etp=1, ep=8, gpu="H100"), (TWICE,)),
        ("CMP-4", Run(MOE), (TWICE,)),
        ("CMP-4", given(Observed(moe=False), gpu="H100", tp=2, ep=1), (TWICE,)),
    ],
)
def test_a_size_that_nobody_knows_is_said_in_a_sentence(number: str, run: Run, said: tuple[str, ...]) -> None:
    fix = CATALOGUE[number]
    assert (*fix.knobs(run).megatron_lm, *sentences(fix.change(run), run)) == said


@pytest.mark.parametrize(("gpu", "share"), [("GB200", 2), ("VR200", 2), ("H100", 4), ("B200", 4)])
def test_grace_has_two_gpus_a_numa_node_and_x86_four(gpu: str, share: int) -> None:
    (command,) = CATALOGUE["HST-1"].knobs(Run(given=Given(gpu=gpu))).environment
    assert command.startswith(f"numactl --cpunodebind=$((SLURM_LOCALID/{share}))")


@pytest.mark.parametrize("run", [shows(moe=False), Run()])
def test_a_model_of_no_known_experts_gets_no_router_flags(run: Run) -> None:
    assert not any("router" in line for line in CATALOGUE["MEM-4"].knobs(run).megatron_lm)
    dense = Run(Observed(moe=False))
    assert not any("moe" in line for line in CATALOGUE["HST-3"].knobs(dense).megatron_lm)
    assert not any("force" in line for line in CATALOGUE["COM-11"].knobs(run).megatron_lm)
