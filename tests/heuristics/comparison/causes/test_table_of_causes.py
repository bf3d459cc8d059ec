"""Each cause of the table with a pair that it explains and a near miss that it does not; what moves what."""

from __future__ import annotations

from typing import Any

from heuristics.comparison.files.measured import MeasuredChange, known_changes, measurements
from heuristics.comparison.suspects.find import find_suspects
from heuristics.comparison.suspects.table import causes, fix_movers, movable
from heuristics.comparison.suspects.view import turned
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.config.view import Config
from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.suspects import MS, change, moved
from tests.doubles.told_suspects import first, lines, told_of
from traces.names.kernels import compute_classes
from traces.settings.settings import settings

CASES = """
nccl_small_a2a: ep_a2a 5>15; + version.nccl 2.29.7>2.30.4; on NVIDIA GB300
nccl_small_all_reduce: tp 5>15; + version.nccl 2.28.3>2.29.7; on NVIDIA H100
nccl_small_all_reduce: all_reduce 5>15; + version.nccl 2.28.3>2.29; on NVIDIA H200
container_fused_gemms: grouped_gemm 5>15; + version.container 26.04>26.06; on GB200
container_fused_gemms: quantize 5>15; + version.container 26.04>26.06; on GB300
container_with_tp: gemm 4>9 none; norm 10; + version.container 26.02>26.04; given tp=2 => medium
container_without_deepep: ep_dispatch 10>30; + version.container 25.09>26.02; runs deepep > alltoall
nccl_host_cpu: launch 1>5; kernel_gap 1>3; gemm 40; + version.nccl 2.29.3>2.30.1;
  given cpu_bound_to_numa=false
  => high | 6 ms | ranks are not bound to NUMA nodes there
nccl_host_cpu: HOST; + version.nccl 2.29.7>2.30.5
  => ranks are not known to be bound to NUMA nodes there
host_unbound: launch 1>5; kernel_gap 1>3; gemm 40; + BINDING true>false => high | 4 ms
host_slower: launch 1>5; kernel_gap 1>3; gemm 40 => medium | 4 ms
host_uncovered: python 1>5; gemm 40>38 => medium | 4 ms
kernel_gaps: kernel_gap 1>5; gemm 40 => 4 ms
ep_overlap_host: sync 1>9; ep_a2a 10>8 overlap; + overlap_moe_expert_parallel_comm false>true
  => 8 ms | the host costs 8.00 ms a step, and 2.00 ms more are hidden
gc_pauses: gc 1>9; gemm 40 => medium
gc_pauses: gc 1>9; gemm 40; + train.manual_gc true>false => high
loader_workers: data 3>30; loads workers=4 > workers=1
  => medium | workers of the data loader (1 may be none): 4 -> 1
loader_workers: data 3>30; loads loads_apart=true > loads_apart=false
  => batches are loaded by: worker processes -> the step's own process
loader_workers: data 3>30; + dataset.num_workers 8>2;
  set dataset.num_workers=8 > dataset.num_workers=2 => high
loader_workers: python 4>20; gemm 40; loads workers=4 > workers=1
data_loader: data 3>30; loads workers=1
  => workers of the data loader: 1 on both sides | steps that wait for their batch: 1 of 1 -> 1 of 1
data_loader: data 3>30; loads waiting_steps=0 > waiting_steps=1
data_loader: data 3>30; loads waiting_steps=1 > waiting_steps=0
token_count_syncs: token_count_sync 1>9; gemm 40
host_syncs: sync 1>9; gemm 40 => stretches of it a step: 100 -> 100
lazy_init: lazy_init 1>9; gemm 40
profiler_overhead: profiler 1>6; perturbed 0.01 > 0.02 0.08 => profiler's part of the step: 1.0 % -> 8.0 %
graphs_whole: graph_replay 70>0 count 1>0; gemm 0>60 count 0>100; launch 0>8; graphs 1 > 0 => 8 ms
graphs_stopped: launch 1>5; kernel_gap 1>3; gemm 40; graphs 0.6 > 0.1;
  + cuda_graph_modules ["attn","mlp"]>[]
  => high | 6 ms | kernel work in CUDA graphs: 60 % -> 10 %
  | cuda_graph_modules: [attn, mlp] -> [] (configuration)
  | launch_starved.launch a step: 1.00 ms -> 5.00 ms (+4.00 ms, 67 % of all that moved)
graphs_stopped: launch 1>5; graphs 0.6 > 0.1; set bf16=true > cuda_graph_impl=local
  => medium | no setting of CUDA graphs changed: graphs that are asked for do not replay
graphs_stopped: kernel_gap 1>5; gemm 40; graphs 0.05 > 0
dispatcher_skipped: ep_dispatch 10>30; runs deepep > alltoall; set FLEX
  => high | the configuration asks for deepep where the trace shows alltoall
dispatcher_exchanged: ep_dispatch 10>30; runs deepep > alltoall;
  set FLEX > moe_token_dispatcher_type=alltoall;
  + moe_token_dispatcher_type flex>alltoall => high
lower_precision: gemm 40>24; quantize 0>3 count 0>50; launch 2>12; + fp8 null>hybrid;
  + detected.precision bf16>fp8
  => high | -3 ms | precision in the trace: bf16 -> fp8
lower_precision: gemm 40>24; attention 20>7; bits fp32:1 > tf32:1 => -29 ms
lower_precision: gemm 40>24; bits tf32:1 > bf16:1
lower_precision: gemm 40>24; bits fp32:1 > bf16:0.9 fp32:0.1
lower_precision: gemm 40>24; bits bf16:1 > fp8:0.125 bf16:0.875
lower_precision: gemm 40>24; bits bf16:0.4 > fp8:0.4; + fp8 null>hybrid
lower_precision: gemm 40>24; bits bf16:0.5 > fp8:0.5
recompute_more: gemm 40>50 count 100>130; norm 2>3 count 10>15; mem recompute_ns=0 > moe_act=11;
  + recompute_granularity null>selective => high | 11 ms | recomputed modules: none -> moe_act
recompute_more: MORE;
  passes 10/10 > 20/10 => kernels that are forward by name a step: 10 -> 20
host_later: python 1>9; gemm 40 count 100>90
offload_more: memcpy_d2h 1>9; mem offload_exposed_ns=0 > offload_exposed_ns=8;
  + fine_grained_activation_offloading false>true => high
input_pageable: memcpy_h2d 3>9; pageable 0 > 5
  => bytes between host and GPU in pageable memory: 0 % -> 50 %
buffer_broadcasts: memcpy_d2d 3>5 count 35>59; other_comm 0>4 count 0>24; gemm 40; broadcasts 0 > 24
  => NCCL broadcasts a step: 0 -> 24
waits_added: python 1>9; gemm 40; calls cudaStreamSynchronize 2 1 > hipStreamSynchronize 3 1
  => calls that synchronise with the GPU, a step: 2.0 -> 3.0
host_slower: HOST; data 0>1; calls cudaLaunchKernel 10 100 > cudaLaunchKernel 10 110
  => a call that launches takes 10.0 us -> 11.0 us
collective_added: all_reduce 5>9 overlap; gemm 40; broadcasts 0 > 1
copies_exposed: memcpy_h2d 1>9; gemm 40 => copies a step of these kinds: 100 -> 100
copies_exposed: memcpy_h2d 1>9; pageable 0 > 4
allocator: allocator 0>4; mem allocator_calls=0 > allocator_calls=12 => medium
  | allocator calls a step: 0.0 -> 12.0
arrival_wait: ep_dispatch 10>30; waits 1 > 11
stretched: gemm 40>44; norm 10; stretch 0.1 > 0.3
stretched: gemm 40>44; norm 10; stretch 0.1 > 0.2
gpu_slower: gemm 40>44; attention 20>22; norm 10>11 => 7 ms
gpu_slower: gemm 50>51; attention 50>51; norm 50>51
gpu_slower: gemm 40>44; attention 20>22; norm 10>11; rope 70 count 100>150 => 7 ms
gpu_slower: gemm 100>110; attention 90>99; norm 10>11 => 20 ms
gpu_slower: gemm 40>44; attention 20>22; norm 20>23; loss 10>11
  => 10 ms | 1 more row moves +1.00 ms a step
  | 4 classes with as many kernels as before differ alike: 11 % in the mean, from 10 % to 15 %
gpu_slower: gemm 40>44; attention 20>22; norm 20>23; loss 10>11; rope 10>11
  => 11 ms | 2 more rows together move +2.00 ms a step
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 2>-; kernels gemm new ->2.5
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 9>-
kernels_slower.gemm: gemm 40>50 3/5/2 100>100; norm 10
grouped_gemm_lost: grouped_gemm 40>20 count 8>4; gemm 9>60 count 20>90; + moe_grouped_gemm true>false
grouped_gemm_lost: grouped_gemm 40>0 count 8>0; gemm 9>60 count 20>90; + moe_grouped_gemm true>false
  => high | 11 ms
fusion_lost: PERMUTE; launch 1>5; kernel_gap 1>3; gemm 40; + FUSION true>false
  => medium | 11 ms
fusion_lost: PERMUTE; HOST; APART;
  + FUSION true>false => high
fusion_lost: PERMUTE; HOST; APART
fusion_lost: PERMUTE; gemm 40; place permute: 1 fused 4 > 3 sort 9
more_work: MORE;
  + train.global_batch_size 1024>1536 => high
more_work: MORE; passes 10/10 > 15/15
more_work: MORE; loss 10>15 count 100>200
optimizer_unfused: optimizer 2>0 count 6>0; elementwise 10>30 count 300>900; gemm 40 => 18 ms
buckets.dp: dp_reduce_scatter 20>25 -16/16/5 12>4; gemm 40
  => data-parallel communication, kernels a step: 12 -> 4
buckets.dp: dp_reduce_scatter 20>33 -16/24/5 12>4; gemm 40
overlap_lost.dp: dp_reduce_scatter 5>15 overlap; + ddp.overlap_grad_reduce true>false => high
kernels_more.gemm: gemm 40>44 2/2/0 100>150; norm 9
kernels_exchanged.attention: attention 7>32; gemm 40; kernels attention gone 7>-;
  kernels attention new ->32;
  place attention: 1 flash 7 > 2 fmha 32
  => in the same places of the step: 7.00 ms (1 x flash) -> 32.0 ms (2 x fmha)
knob.attention_backend: attention 5>9 none; + attention_backend flash>fused
  => medium | attention_backend: flash -> fused (configuration)
version.torch: trailing 5>9; + version.torch 2.9>2.10 => low
row.trailing: trailing 0>9 => low | 9 ms
"""
OF_FAMILY = """
overlap_lost.{0}: {1} 5>15 overlap
comm_slower.{0}: {1} 5>15
comm_more.{0}: {1} 5>15 count 100>150
"""
OF_CLASS = """
kernels_slower.{0}: {0} 40>44; {1} 9; kernels {0} slower 40>44
  => one compute.{0} kernel: 40.0 ms -> 44.0 ms, grid: 1x1x1 -> 2x1x1
kernels_number.{0}: {0} 40>44 duration 50>100; {1} 9 => {2} kernels a step: 50 -> 100
kernels_exchanged.{0}: {0} 40>44; {1} 9; kernels {0} gone 10>-; kernels {0} new ->11
  => one compute.{0} kernel: 10.0 ms -> none
kernels_grid.{0}: {0} 40>44; {1} 9; kernels {0} grid 10>11
  => one compute.{0} kernel: 10.0 ms -> 11.0 ms, grid: 1x1x1 -> 2x1x1
kernels_more.{0}: {0} 40>44 count 100>150; {1} 9 => {2} kernels a step: 100 -> 150
"""
NEAR = """
nccl_small_a2a: ep_dispatch 10>30; + version.nccl 2.29.7>2.30.4; on NVIDIA GB200
nccl_small_a2a: ep_dispatch 10>30; + version.nccl 2.30.1>2.30.4; on NVIDIA GB300
nccl_small_a2a: ep_dispatch 10>30; + version.nccl 2.28>2.29; on NVIDIA GB300
nccl_small_a2a: trailing 1>9; + version.nccl 2.29.7>2.30.4; on NVIDIA GB300
nccl_small_all_reduce: tp 5>9; + version.nccl 2.28.3>2.29.7; on NVIDIA A100
container_fused_gemms: quantize 5>9; + version.container 26.04>26.06; on H100
container_fused_gemms: quantize 5>9; + version.container 26.04>26.08; on GB200
container_with_tp: gemm 40>44; + version.container 26.02>26.06; given tp=1
container_with_tp: gemm 40>44; + version.container 25.11>26.06; given tp=2
container_without_deepep: ep_dispatch 10>30; + version.container 25.09>26.02
nccl_host_cpu: HOST; + version.nccl 2.29.3>2.30.1; given cpu_bound_to_numa=true
nccl_host_cpu: HOST; + version.nccl 2.28.9>2.30.1
nccl_host_cpu: HOST; + version.nccl 2.28.9>2.29.3
nccl_host_cpu: HOST; + version.nccl 2.30.1>2.30.5
nccl_host_cpu: launch 1>5; gemm 40>34; + version.nccl 2.29.3>2.30.1
nccl_host_cpu: launch 1>5; elementwise 2>3 count 100>150; + version.nccl 2.29.3>2.30.1
nccl_host_cpu: HOST; graphs 0 > 0.05; + version.nccl 2.29.3>2.30.1
host_unbound: HOST; + BINDING false>true
host_unbound: launch 1>5; elementwise 2>3 count 100>150; + BINDING true>false
host_unbound: python 1>5; gemm 40>38; + BINDING true>false
host_unbound: launch 1>5; python 9>1; gemm 40; + BINDING true>false
host_unbound: HOST; graphs 0 > 0.05; + BINDING true>false
host_slower: launch 1>5; elementwise 2>3 count 100>150
host_slower: python 1>5; gemm 40>38
host_slower: HOST; data 3>30
host_slower: HOST; + dataset.num_workers 8>2
host_slower: HOST; loads workers=1 > workers=4
host_slower: HOST; loads loads_apart=false > loads_apart=true
host_slower: HOST; data 3>30; calls cudaLaunchKernel 10 100 > cudaLaunchKernel 10 104
waits_added: python 1>9; gemm 40; calls cudaStreamSynchronize 2 1 > cudaStreamQuery 8 1
waits_added: trailing 1>9; gemm 40; calls cudaStreamSynchronize 2 1 > cudaStreamSynchronize 4 1
collective_added: other_comm 5>9; gemm 40; broadcasts 0 > 1
collective_added: all_reduce 5>9 overlap; MORE; broadcasts 0 > 1
host_slower: HOST; graphs 0 > 0.05
host_slower: launch 1>5
host_uncovered: python 1>5; gemm 40>39
host_uncovered: python 1>5; gemm 40>30; data 3>30
host_uncovered: python 1>5; gemm 40>30 count 100>50
kernel_gaps: kernel_gap 1>5; gemm 40; graphs 0.6 > 0.1
kernel_gaps: kernel_gap 1>5 count; gemm 40
kernel_gaps: kernel_gap 1>5; gemm 40; graph_replay 9 count 1>2
kernels_grid.gemm: gemm 40>44 count 100>150; norm 9; kernels gemm grid 10>11
ep_overlap_host: sync 1>9; ep_a2a 18>10 overlap; + overlap_moe_expert_parallel_comm false>true
gc_pauses: trailing 1>9; gemm 40
data_loader: trailing 1>9; gemm 40
data_loader: data 3>30; loads waiting_steps=0
token_count_syncs: trailing 1>9; gemm 40
host_syncs: trailing 1>9; gemm 40
lazy_init: trailing 1>9; gemm 40
profiler_overhead: trailing 1>9; gemm 40
loader_workers: data 3>30; loads workers=1
loader_workers: python 20>4; gemm 40; loads workers=4 > workers=1
graphs_stopped: HOST; graphs 0.6
graphs_stopped: launch 1>5; graphs 0.1 > 0.6; + cuda_graph_modules ["attn"]>["attn","mlp"]
graphs_stopped: HOST; graphs 0.6 > 0.56
graphs_stopped: graph_replay 70>0 count 1>0; gemm 0>60 count 0>100; launch 0>8; graphs 1 > 0
graphs_whole: HOST; graphs 1 > 0
dispatcher_skipped: ep_dispatch 10>30; runs deepep > alltoall; set FLEX > moe_token_dispatcher_type=alltoall
dispatcher_skipped: ep_dispatch 10>30; set FLEX
dispatcher_exchanged: ep_dispatch 10>30
dispatcher_exchanged: ep_dispatch 10>30; runs deepep > alltoall; set FLEX
lower_precision: gemm 40>24
lower_precision: gemm 40>24; bits bf16:1 > bf16:0.98 fp32:0.02
lower_precision: gemm 40>24; bits bf16:1 > fp8:0.09 bf16:0.91
recompute_more: gemm 40>50 count 100>130; mem recompute_ns=0 > allocator_calls=0
recompute_more: MORE;
  mem norm=6 > norm=9
recompute_more: norm 10>19 count 60>60; gemm 40 count 40>40; mem norm=6 > norm=12
recompute_more: MORE; passes 10/10 > 15/15
recompute_more: MORE; passes 0/10 > 10/10
recompute_more: MORE; passes 10/0 > 20/0
offload_more: memcpy_d2h 1>9; mem offload_exposed_ns=0
copies_exposed: trailing 1>9; gemm 40
copies_exposed: memcpy_d2h 1>9; mem offload_exposed_ns=0 > offload_exposed_ns=8
copies_exposed: memcpy_h2d 3>9; pageable 0 > 5
input_pageable: memcpy_h2d 3>9; pageable 0 > 4
lower_precision: gemm 40>24; quantize 0>3 count 0>50; bits bf16:1
waits_added: python 1>9; gemm 40 count 100>150; calls cudaStreamSynchronize 2 1 > cudaStreamSynchronize 3 1
buffer_broadcasts: memcpy_d2d 3>5 count 35>59; other_comm 0>4 count 0>24; gemm 40
buffer_broadcasts: other_comm 0>4 count 0>24; MORE; broadcasts 0 > 24
allocator: allocator 0>4
arrival_wait: ep_dispatch 10>30; waits 1 > 10
stretched: gemm 40>44; norm 10; stretch 0.1 > 0.19
stretched: gemm 40>44 count 100>150; norm 10; stretch 0.1 > 0.3
gpu_slower: gemm 40>44; attention 20; norm 10
gpu_slower: gemm 40>44; attention 20>22
gpu_slower: gemm 40>44; attention 20>22; norm 10>11; loss 18
gpu_slower: gemm 40>41; attention 20>21; norm 10>11
gpu_slower: gemm 100>101; attention 100>102; norm 100>102
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 3>-; kernels gemm new ->3
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 10>-
fusion_lost: PERMUTE; HOST; kernels permute gone 4>-; kernels permute new ->3
kernels_slower.gemm: gemm 40>44; attention 20>22; norm 10>11
grouped_gemm_lost: grouped_gemm 40>41; gemm 9>60 count 20>90
grouped_gemm_lost: grouped_gemm 40>20 count 8>4; gemm 9>60 count 20>20
grouped_gemm_lost: grouped_gemm 40>41 count 8>5; gemm 9>60 count 20>90
fusion_lost: PERMUTE; gemm 40>60 count 100>150; + FUSION true>false
fusion_lost: PERMUTE; gemm 40; kernels permute new ->3 x3
fusion_lost: PERMUTE; gemm 40; kernels permute new ->3 x3; kernels permute slower 3>4
fusion_lost: PERMUTE; gemm 40; kernels permute gone 4>-; kernels permute slower 3>4 x3
more_work: gemm 0>5 count 0>100
more_work: gemm 10>15 count 100>150; attention 10>15 count 100>150
more_work: MORE;
  loss 10>15 count 100>200; rope 10>11
more_work: MORE; passes 10/10 > 20/10
more_work: MORE; passes 100/100 > 150/101
more_work: MORE; graph_replay 9 count 1>2
more_work: MORE; loss 10>15 count 1>3; rope 10>11 count 1>1
optimizer_unfused: elementwise 10>30 count 300>900; gemm 40
optimizer_unfused: optimizer 2>1 count 6>3; elementwise 10>30 count 300>900; gemm 40
optimizer_unfused: optimizer 2>0 count 6>0; elementwise 10>30 count 300>900; gemm 40>60 count 100>150
buckets.dp: dp_reduce_scatter 20>34 -16/25/5 12>4; gemm 40
buckets.dp: dp_reduce_scatter 20>30 0/10/0 12>12; gemm 40
buckets.dp: dp_reduce_scatter 20>30 0/0/10 12>4; gemm 40
buckets.tp: tp 20>25 -16/16/5 12>4; gemm 40
comm_more.tp: tp 5>15 count; gemm 40
comm_more.tp: tp 5>15 count 100>150; gemm 40; graph_replay 9 count 1>2
overlap_lost.tp: tp 5>15 none; gemm 40
comm_slower.ep: ep_dispatch 10>30; waits 1 > 18
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 5>-; kernels gemm new ->5
kernels_exchanged.gemm: gemm 40>44; norm 10; kernels gemm gone 9>-; kernels gemm new ->44
kernels_grid.gemm: gemm 40>44; norm 10; kernels gemm grid 9>10
kernels_more.norm: norm 4>9 count 100>101; gemm 40
knob.train.manual_gc: trailing 1>9; + train.manual_gc true>false
knob.ddp.check_for_nan_in_grad: arrival 1>5; gemm 40; + ddp.check_for_nan_in_grad false>true
kernels_slower.gemm: gemm 40>50 3/4/3 100>100; norm 10
"""
KINDS = {
    "ep": "ep_combine", "dp": "dp_reduce_scatter", "sendrecv": "sendrecv_unresolved", "other": "other_comm",
}  # fmt: skip
KINDS |= {"all_reduce": "all_reduce", "tp": "tp", "pp": "pp_p2p", "cp": "cp"}
CLASSES = [one for one in compute_classes() if one != "graph_replay"]
WRITTEN = [CASES.strip(), *(OF_FAMILY.strip().format(*family) for family in KINDS.items()),
    *(OF_CLASS.strip().format(one, "norm" if one == "gemm" else "gemm", {"other": "unnamed"}.get(one, one))
        for one in CLASSES)]  # fmt: skip
FIRING = [*lines("\n".join(WRITTEN))]


def test_a_cause_comes_first_with_its_evidence_and_mirrored_where_sides_are_swapped() -> None:
    titles = {one.id: {one.title, one.mirrored} for one in causes().rules}
    for id_, said, expected in FIRING:
        found, back = first(said), find_suspects(turned(told_of(said)))[0]
        assert (said, found.id, back.id) == (said, id_, id_)
        assert {*expected} <= {*found.because, found.confidence, f"{found.explains_ns // MS} ms"}
        mirrored = found.rows, found.confidence, -found.explains_ns
        assert (said, back.rows, back.confidence, back.explains_ns) == (said, *mirrored)
        assert {found.title, back.title} == titles.get(id_, {found.title, back.title})


def test_what_only_looks_like_a_cause_is_none() -> None:
    for id_, said, _ in lines(NEAR):
        found = told_of(said)
        suspects = [one.id for side in (found, turned(found)) for one in find_suspects(side)]
        assert (said, id_ in suspects) == (said, False)


MOVES = {
    "exposed_copy.memcpy_h2d ~": "work.pageable_frac",
    "compute.activation +": "moe_layer_recompute batch_invariant_mode",
    "compute.activation -": "apply_rope_fusion",
    "compute.activation ~": "comm_overlap.overlap_moe_expert_parallel_comm transformer_impl",
    "compute.activation ~ broad": "tensor_model_parallel_size account_for_embedding_in_pipeline_split gpu"
    " ffn_hidden_size ddp.data_parallel_sharding_strategy moe_latent_size version.te version.cuda container"
    " ddp.megatron_fsdp_version",
    "compute.attention ~": "context_parallel_size activation_func_fp8_input_store attention_backend",
    "compute.elementwise +": "ddp.check_for_nan_in_grad",
    "compute.elementwise ~": "optimizer.exp_avg_dtype moe_enable_deepep moe_aux_loss_coeff",
    "compute.embedding ~": "cross_entropy_fusion_impl",
    "compute.gemm ~": "moe_deepep_num_sms moe_expert_capacity_factor expert_model_parallel_size",
    "compute.graph_replay ~": "cuda_graph_impl", "compute.grouped_gemm ~": "moe_grouped_gemm",
    "compute.memory ~": "moe_paged_stash",
    "compute.norm ~": "comm_overlap.overlap_grad_reduce sequence_parallel env.NVTE_BWD_LAYERNORM_SM_MARGIN",
    "compute.permute ~": "moe_combine_bwd_dtype", "exposed_comm.all_reduce -": "comm_overlap.tp_comm_overlap",
    "exposed_comm.dp_reduce_scatter ~": "comm_overlap.align_param_gather env.TORCH_NCCL_HIGH_PRIORITY",
    "exposed_comm.ep_dispatch ~": "env.NCCL_ALGO nvlink_domain data_parallel_size version.nccl",
    "exposed_comm.pp_p2p ~": "batch_p2p_comm env.CUDA_DEVICE_MAX_CONNECTIONS",
    "launch_starved.allocator +": "train.empty_unused_memory_level",
    "launch_starved.allocator ~": "env.PYTORCH_ALLOC_CONF",
    "launch_starved.data ~": "data_loader.num_workers",
    "launch_starved.launch +": "activation_offload_fraction env.CUDA_LAUNCH_BLOCKING profiling.nvtx_ranges",
    "launch_starved.launch -": "optimizer.overlap_cpu_optimizer_d2h_h2d",
    "launch_starved.launch ~": "recorder.version env.NCCL_DEBUG detected.short_kernel_frac",
    "launch_starved.launch ~ broad": "version.python",
    "launch_starved.os_wait ~": "checkpoint.also_save_hf_checkpoint",
    "launch_starved.sync -": "launcher.numa_binding",
}  # fmt: skip
"""Whether more of a thing makes a row longer (+), shorter (-) or either (~): one thing of each mover."""


def test_each_mover_of_the_table_moves_its_rows_its_way_and_only_so() -> None:
    for row_and_way, things in MOVES.items():
        row, way_, *broad = row_and_way.split()
        for what in things.split():
            for base, new, moves in ((1, 9, way_ != "-"), (9, 1, way_ != "+")):
                up, down = moved(row, base, new), moved(row, new, base)
                found = movable(change(what, 1, 2), [up])
                assert (what, found.rows, found.is_broad) == (what, (up,) * moves, bool(broad and moves))
                assert movable(change(what, 2, 1), [down]).rows == (down,) * moves
    assert sum(len(one.split()) for one in MOVES.values()) == len(causes().movers)
    assert {one.source for one in fix_movers()} <= {fix.sources[0] for fix in CATALOGUE.values()}


BF16, FP8 = {"fp8": None, "fp4": None, "bf16": True}, {"fp8": "e4m3", "bf16": True}
MODELS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "dsv3": ("dsv3", BF16),
    "dsv3-fp8": ("dsv3", FP8),
    "q30": ("qwen3_30b", {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}),
    "q30-pp2": ("qwen3_30b", {"pipeline_model_parallel_size": 2}),
    "q30-ep16": ("qwen3_30b", {"moe_token_dispatcher_type": "alltoall", "expert_model_parallel_size": 16}),
    "q235": ("qwen3_235b", {"num_layers": 94, "hidden_size": 4096, **BF16}),
    "q235-fp8": ("qwen3_235b", {"num_layers": 94, "hidden_size": 4096, **FP8}),
    "llama": (None, {"num_layers": 80, "hidden_size": 8192}),
    "gpt-oss": (None, {"moe_router_topk": 4, "moe_ffn_hidden_size": 2880, **BF16}),
    "gpt-oss-fp8": (None, {"moe_router_topk": 4, "moe_ffn_hidden_size": 2880, **FP8}),
}
MEASURED = """
ep_overlap: 1.189 - B200 q235-fp8; 1.075 - B200 q235; 0.759 - H100 q30-ep16; 0.849 - H100 q30;
  0.928 1.006 H100 any
delayed_wgrad: 0.996 - H100 any
mtp: 1.068 - H100 any; 1.080 - H100 any
full_recompute: 1.222 0.876 H100 any
mlp_recompute: 1.196 0.946 H100 llama; 1.210 0.946 H100 llama
core_attn_recompute: 1.017 1.029 H100 q30,q30-pp2,q30-ep16; 1.038 1.000 H100 any
moe_act_recompute: 1.020 0.982 H100 any
mla_up_proj_recompute: 1.052 0.980 H100 any; 1.079 - GB200 dsv3,dsv3-fp8
layernorm_recompute: 1.031 - H100 any
graphs: 0.921 - GB200 dsv3,dsv3-fp8; 0.777 - H100 q30-pp2; 1.015 - H100 q30-ep16; 0.837 - H100 any;
  0.767 - H100 any
hybridep: 1.042 - GB200 gpt-oss,gpt-oss-fp8; 1.017 - GB200 gpt-oss-fp8
deepep: 0.758 - B200 dsv3,dsv3-fp8; 0.954 - GB200 dsv3,dsv3-fp8
deepep_to_hybridep: 0.880 - GB200 dsv3,dsv3-fp8
hybridep_fused: 0.960 - H100 q30,q30-pp2,q30-ep16
low_precision: 0.820 - GB200 dsv3,dsv3-fp8; 0.813 - GB200 q235,q235-fp8;
  0.984 - B200 q30,q30-pp2,q30-ep16; 0.982 - B200 q30,q30-pp2,q30-ep16
numa_binding: 0.907 - GB200 dsv3,dsv3-fp8
router_fusion: 0.981 - GB200 dsv3,dsv3-fp8
permute_fusion: 0.934 - GB200 dsv3,dsv3-fp8
loss_fusion: 0.979 0.953 MI300X/MI325X/MI355X any
virtual_stages: 0.896 - B300 dsv3-fp8; 0.932 - B300 dsv3
tensor_parallel: 1.389 - H100 any
optimizer_offload: 1.900 0.919 H100 any; 4.200 0.678 H100 any
activation_offload: 1.016 0.893 GB200 dsv3,dsv3-fp8
balance_loss: 1.201 - H100 dsv3,dsv3-fp8
forced_routing: 2.204 - GB200 any
expandable_segments: 1.000 - H100 any; 1.000 - B300 q30,q30-pp2,q30-ep16
"""
"""Step and memory as parts of the old ones, GPUs, and of which of these models it is a measurement."""


def written(one: MeasuredChange) -> str:
    figures = ("-" if times is None else f"{times:.3f}" for times in (one.times, one.memory_times))
    models = ["any"]
    if one.when is not None:
        configs = {name: Config(Given(family=family), Observed(), settings(knobs, "run.yaml"))
            for name, (family, knobs) in MODELS.items()}  # fmt: skip
        models = [name for name, config in configs.items() if one.when.holds(config)]
    return " ".join((*figures, "/".join(one.gpu), ",".join(models)))


def test_each_measurement_tells_its_figures_of_its_models_alone() -> None:
    rows = [f"{id_}: {'; '.join(map(written, measurements(id_)))}" for id_ in known_changes()]
    assert rows == MEASURED.strip().replace("\n  ", " ").splitlines()
