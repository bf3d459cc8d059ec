"""Each cause with a pair that it explains and a near miss that it does not, and the order of suspects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.comparison.difference.changed import way
from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.suspects import shown, ways
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.comparison.suspects.shown import VIEWED
from heuristics.comparison.suspects.table import causes, fix_movers, looks, movable
from heuristics.comparison.suspects.view import View, turned
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.result.compared import (
    ComparedChange,
    ComparedRow,
    Exchange,
    Exchanges,
    ExchangeSum,
    Suspect,
    Worked,
)
from heuristics.result.configured import ConfigFinding
from tests.doubles.comparison import configuration, kernel, trace
from tests.doubles.result import double
from tests.doubles.suspects import MS, change, facts, kernel_delta, moved
from traces.account.pieces import CAUSES
from traces.names.kernels import COMM_KINDS, compute_classes

NAMED = {
    **{name: f"compute.{name}" for name in compute_classes()},
    **{name: f"exposed_comm.{name}" for name in COMM_KINDS},
    **{name: f"launch_starved.{name}" for name in CAUSES},
    **{name: f"launch_latency.{name}" for name in ("arrival", "kernel_gap")},
    **{name: f"exposed_copy.{name}" for name in ("memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memset")},
}


def row(text: str) -> ComparedRow:
    """`gemm 40` did not move, `gemm 40>50` did by duration, `gemm 40>50 count 100>130` by count, `none`: by
    what nobody knows; `tp 20>25 -16/16/5 12>4`: by so many ms of count, duration and overlap.
    """
    name, times, by, *counts = [*text.split(), "duration"][: max(3, len(text.split()))]
    base, new = (int(one) for one in (times.split(">") * 2)[:2])
    numbers = [float(one) for one in counts[0].split(">")] if counts else []
    one = moved(NAMED.get(name, name), base, new, by if by.isalpha() and by != "none" else "", *numbers)
    if "/" not in by:
        return one
    count_ns, duration_ns, overlap_ns = (int(ms) * MS for ms in by.split("/"))
    return replace(one, count_ns=count_ns, duration_ns=duration_ns, overlap_ns=overlap_ns)


def value(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return tuple(found) if isinstance(found, list) else found


def setting(text: str) -> tuple[str, Any]:
    name, _, one = text.partition("=")
    return name, value(one)


def told(text: str) -> ComparedChange:
    """`fp8 null>hybrid`: a change, by the log of versions and by the trace of what is detected."""
    what, _, sides = text.partition(" ")
    trace_, log = what.startswith(("detected.", "gpu")), what.startswith("version.")
    base, new = sides.split(">") if log else map(value, sides.split(">"))
    return change(what, base, new, "trace" if trace_ else "log" if log else "configuration")


def kernels(text: str) -> Any:
    """`gemm gone 40>- x3`: kernels of a class in ms, which run so often a step."""
    name, what, times, *often = text.split()
    one = kernel_delta(NAMED[name], what, *(None if ms == "-" else float(ms) for ms in times.split(">")))  # type: ignore[arg-type]
    return replace(one, new_count=float(often[0][1:])) if often else one


def place(text: str) -> Exchanges:
    """`permute: 1 fused 4 > 3 sort 9`: what does the work in one place of both steps, and in how many ms."""
    name, _, sides = text.partition(": ")
    one, other = (Worked(called, NAMED[name], int(count), int(ms) * MS)
        for count, called, ms in map(str.split, sides.split(" > ")))  # fmt: skip
    pair = ((one,), (other,), one.count, other.count, one.work_ns, other.work_ns)
    nothing = ExchangeSum(0, 0, 0, 0)
    return Exchanges(
        (Exchange("exchanged", NAMED[name], None, *pair, other.work_ns - one.work_ns),), nothing, 0, nothing
    )


def bits(text: str) -> dict[str, Any]:
    found = {name: float(part) for name, _, part in (one.partition(":") for one in text.split())}
    return {"detected": {"precision": max(found, key=found.__getitem__), "precision_shares_frac": found}}


def passing(text: str) -> dict[str, Any]:
    ahead, back = map(int, text.split("/"))
    unknown = {"recompute_ns": None, "recompute_modules": None}
    named = kernel("norm_fwd", MS, count=ahead), kernel("norm_bwd", MS, count=back)
    return {"kernels": named, "memory": unknown}


def stretch(text: str) -> dict[str, Any]:
    """Half of 40 ms of compute runs beside communication."""
    beside = {"frac": float(text), "group_count": 4, "beside_count": 50, "beside_ns": 20 * MS}
    return {"sm": {"stretch_frac": float(text), "stretch": beside, "comm_blocks": 20}}


def loads(text: str) -> dict[str, Any]:
    plain = {"waiting_steps": 1, "workers": None, "input_copies": 10, "input_copies_pageable": 10}
    name, one = text.split("=")
    return {"data_loading": plain | {"input_copies_exposed_ns": 0, name: value(one)}}


def memory(text: str) -> dict[str, Any]:
    """A field in ms, a count, or what of a module runs again."""
    name, one = text.split("=")
    if name.endswith("_ns") or name == "allocator_calls":
        return {"memory": {"recompute_ns": 0, name: int(one) * (MS if name.endswith("_ns") else 1)}}
    return {"memory": {"recompute_ns": int(one) * MS, "recompute_modules": {name: int(one) * MS}}}


def broadcasts(text: str) -> dict[str, Any]:
    name = "ncclDevKernel_Broadcast_RING_LL"
    return {"kernels": (kernel(name, MS, count=int(text), key="comm.other_comm"),) if int(text) else ()}


OF_RANKS: dict[str, Callable[[str], dict[str, Any]]] = {
    "graphs": lambda text: {"detected": {"graph_share_frac": float(text)}},
    "runs": lambda text: {"detected": {"dispatcher": text}},
    "waits": lambda text: {"a2a": {"waiting_like_ns": int(text) * MS}},
    "on": lambda text: {"gpu": text},
    **{
        "bits": bits,
        "passes": passing,
        "stretch": stretch,
        "loads": loads,
        "mem": memory,
        "broadcasts": broadcasts,
    },
}
WORDS = {
    "MORE": "gemm 10>15 count 100>150; attention 10>15 count 100>150; norm 10>15 count 100>150",
    "HOST": "launch 1>5; gemm 40", "PERMUTE": "permute 4>9 count 20>60",
    "APART": "kernels permute gone 4>-; kernels permute new ->3 x3", "BINDING": "launcher.numa_binding",
    "FUSION": "moe_permute_fusion",
    "FLEX": "moe_token_dispatcher_type=flex moe_flex_dispatcher_backend=deepep",
}  # fmt: skip
OF_RESULTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "given": lambda text: {"given": dict([setting(text)])},
    "set": lambda text: {"configuration": configuration(dict(map(setting, text.split())))},
    "perturbed": lambda text: {"traces": tuple(trace(float(one)) for one in text.split())},
}
"""What a rank, or a result, of either side shows; one text is of both sides, `a > b` of base and new."""


def told_of(text: str) -> Facts:
    """A difference in parts: rows, `+` changes, `kernels`, a `place`, and what both sides show."""
    rows, about = list[ComparedRow](), dict[str, Any]()
    for word, meaning in WORDS.items():
        text = text.replace(word, meaning)
    for part in text.split("; "):
        kind, _, rest = part.partition(" ")
        sides = [(rest.split(" > ") * 2)[place] for place in (0, 1)]
        if kind in OF_RANKS or kind in OF_RESULTS:
            of, end = (OF_RANKS, "") if kind in OF_RANKS else (OF_RESULTS, "_result")
            for side, said in zip(("base", "new"), sides, strict=True):
                about[side + end] = about.get(side + end, {}) | (of[kind](said) if said != "-" else {})
        elif kind in ("+", "kernels"):
            name, made = ("changed", told) if kind == "+" else ("kernels", kernels)
            about[name] = (*about.get(name, ()), made(rest))
        elif kind == "place":
            about["exchanged"] = place(rest)
        else:
            rows.append(row(part))
    aligned = about.pop("exchanged", None)
    found = facts(*rows, **about)
    return replace(found, exchanged=aligned) if aligned else found


def ids(text: str) -> list[str]:
    return [one.id for one in find_suspects(told_of(text))]


def first(text: str) -> Suspect:
    return find_suspects(told_of(text))[0]


def lines(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """An id, the difference, and what is expected of it; a line that is indented goes on with the last."""
    for line in text.strip().replace("\n  ", " ").splitlines():
        id_, _, rest = line.partition(": ")
        said, _, expected = rest.partition(" => ")
        yield id_, said, expected.split(" | ") if expected else []


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
loader_workers: data 3>30; loads workers=4 > workers=1 => medium | workers of the data loader: 4 -> 1
loader_workers: data 3>30; loads loads_apart=true > loads_apart=false
  => batches are loaded by: worker processes -> the step's own process
loader_workers: data 3>30; + dataset.num_workers 8>2;
  set dataset.num_workers=8 > dataset.num_workers=2 => high
loader_workers: python 4>20; gemm 40; loads workers=4 > workers=1
data_loader: data 3>30; loads workers=1
  => workers of the data loader: 1 on both sides | steps that wait for their batch: 1 of 1 -> 1 of 1
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
  => high | -3 ms
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
offload_more: memcpy_d2h 1>9; mem offload_exposed_ns=0 > offload_exposed_ns=8;
  + fine_grained_activation_offloading false>true => high
input_pageable: memcpy_h2d 3>9; loads input_copies_pageable=0 > input_copies_pageable=5
  => input copies from pageable memory: 0 % -> 50 %
buffer_broadcasts: memcpy_d2d 3>5 count 35>59; other_comm 0>4 count 0>24; gemm 40; broadcasts 0 > 24
  => NCCL broadcasts a step: 0 -> 24
copies_exposed: memcpy_h2d 1>9; gemm 40 => copies a step of these kinds: 100 -> 100
copies_exposed: memcpy_h2d 1>9; loads input_copies_pageable=0 > input_copies_pageable=4
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
kernels_number.{0}: {0} 40>44 duration 50>100; {1} 9 => {0} kernels a step: 50 -> 100
kernels_exchanged.{0}: {0} 40>44; {1} 9; kernels {0} gone 10>-; kernels {0} new ->11
  => one compute.{0} kernel: 10.0 ms -> none
kernels_grid.{0}: {0} 40>44; {1} 9; kernels {0} grid 10>11
  => one compute.{0} kernel: 10.0 ms -> 11.0 ms, grid: 1x1x1 -> 2x1x1
kernels_more.{0}: {0} 40>44 count 100>150; {1} 9 => {0} kernels a step: 100 -> 150
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
host_slower: HOST; graphs 0 > 0.05
host_slower: launch 1>5
host_uncovered: python 1>5; gemm 40>39
host_uncovered: python 1>5; gemm 40>30; data 3>30
host_uncovered: python 1>5; gemm 40>30 count 100>50
kernel_gaps: kernel_gap 1>5; gemm 40; graphs 0.6 > 0.1
kernel_gaps: kernel_gap 1>5 count; gemm 40
ep_overlap_host: sync 1>9; ep_a2a 18>10 overlap; + overlap_moe_expert_parallel_comm false>true
gc_pauses: trailing 1>9; gemm 40
data_loader: trailing 1>9; gemm 40
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
recompute_more: MORE; passes 10/10 > 15/15
offload_more: memcpy_d2h 1>9; mem offload_exposed_ns=0
copies_exposed: trailing 1>9; gemm 40
copies_exposed: memcpy_d2h 1>9; mem offload_exposed_ns=0 > offload_exposed_ns=8
copies_exposed: memcpy_h2d 3>9; loads input_copies_pageable=0 > input_copies_pageable=5
input_pageable: memcpy_h2d 3>9; loads input_copies_pageable=0 > input_copies_pageable=4
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
optimizer_unfused: elementwise 10>30 count 300>900; gemm 40
optimizer_unfused: optimizer 2>1 count 6>3; elementwise 10>30 count 300>900; gemm 40
optimizer_unfused: optimizer 2>0 count 6>0; elementwise 10>30 count 300>900; gemm 40>60 count 100>150
buckets.dp: dp_reduce_scatter 20>49 -16/40/5 12>4; gemm 40
buckets.dp: dp_reduce_scatter 20>30 0/10/0 12>12; gemm 40
buckets.dp: dp_reduce_scatter 20>30 0/0/10 12>4; gemm 40
buckets.tp: tp 20>25 -16/16/5 12>4; gemm 40
comm_more.tp: tp 5>15 count; gemm 40
overlap_lost.tp: tp 5>15 none; gemm 40
comm_slower.ep: ep_dispatch 10>30; waits 1 > 18
kernels_slower.gemm: gemm 40>50; norm 10; kernels gemm gone 5>-; kernels gemm new ->5
kernels_exchanged.gemm: gemm 40>44; norm 10; kernels gemm gone 9>-; kernels gemm new ->44
kernels_grid.gemm: gemm 40>44; norm 10; kernels gemm grid 9>10
kernels_more.norm: norm 4>9 count 100>101; gemm 40
knob.train.manual_gc: trailing 1>9; + train.manual_gc true>false
"""
KINDS = {
    "ep": "ep_combine", "dp": "dp_reduce_scatter", "sendrecv": "sendrecv_unresolved", "other": "other_comm",
}  # fmt: skip
KINDS |= {"all_reduce": "all_reduce", "tp": "tp", "pp": "pp_p2p", "cp": "cp"}
CLASSES = [one for one in compute_classes() if one != "graph_replay"]
WRITTEN = [CASES.strip(), *(OF_FAMILY.strip().format(*family) for family in KINDS.items()),
    *(OF_CLASS.strip().format(one, "norm" if one == "gemm" else "gemm") for one in CLASSES)]  # fmt: skip
FIRING = [*lines("\n".join(WRITTEN))]


@pytest.mark.parametrize(("id_", "said", "expected"), FIRING)
def test_a_cause_comes_first_with_its_evidence_and_mirrored_where_sides_are_swapped(
    id_: str, said: str, expected: list[str]
) -> None:
    found, back = first(said), find_suspects(turned(told_of(said)))[0]
    assert (found.id, back.id) == (id_, id_)
    assert {*expected} <= {*found.because, found.confidence, f"{found.explains_ns // MS} ms"}
    assert (back.rows, back.confidence, back.explains_ns) == (found.rows, found.confidence,
        -found.explains_ns)  # fmt: skip
    rule = next((one for one in causes().rules if one.id == id_), None)
    assert rule is None or {found.title, back.title} == {rule.title, rule.mirrored}


@pytest.mark.parametrize(("id_", "said", "_"), [*lines(NEAR)])
def test_what_only_looks_like_a_cause_is_none(id_: str, said: str, _: list[str]) -> None:
    found = told_of(said)
    assert id_ not in [one.id for side in (found, turned(found)) for one in find_suspects(side)]


MOVES = {
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
                found = movable(change(what, 1, 2), [moved(row, base, new)])
                assert (what, found.rows, found.is_broad) == (what, (row,) * moves, bool(broad and moves))
                assert movable(change(what, 2, 1), [moved(row, new, base)]).rows == found.rows
    assert sum(len(one.split()) for one in MOVES.values()) == len(causes().movers)
    assert {one.source for one in fix_movers()} <= {fix.sources[0] for fix in CATALOGUE.values()}


def test_each_row_without_a_proven_cause_has_its_place_to_look() -> None:
    found = {row: first(f"{row} 1>9 none")
        for row in ("gemm", "busy", "tp", "os_wait", "arrival", "idle", "trailing")}  # fmt: skip
    places = {name: [one.next for one in looks()].index(found[name].next) for name in found
        if found[name].id.startswith("row.")}  # fmt: skip
    assert places == {"gemm": 0, "busy": 0, "tp": 1, "os_wait": 3, "arrival": 3, "idle": 3, "trailing": 4}
    assert looks()[2].rows == ("exposed_copy.*",)
    assert [one.next.split()[:2] for one in looks()] == [
        ["compare", "the"], ["compare", "the"], ["find", "the"], ["record", "both"], ["look", "at"]
    ]  # fmt: skip


def test_a_change_explains_the_rows_it_can_move_and_only_those_that_moved() -> None:
    said = (change("train.manual_gc", True, False), change("tp_comm_overlap", True, False),
        change("my_own", 1, 2))  # fmt: skip
    found = facts(row("gc 1>9"), row("tp 2>1"), changed=said)
    for side in (found, turned(found)):
        assert [one.can_explain for one in with_explained(side).changed] == [("launch_starved.gc",), (), ()]


def test_audit_62_alltoall_is_the_control_arm_where_a_flex_backend_got_slower() -> None:
    assert "moe_token_dispatcher_type alltoall" in first("ep_dispatch 5>9; runs deepep").next
    assert "control arm" in first("ep_dispatch 5>9; runs unknown; set FLEX").next
    for other in ("ep_dispatch 9>5; runs deepep", "tp 5>9; runs deepep", "ep_dispatch 5>9; runs alltoall"):
        assert "control arm" not in first(other).next


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("gemm 40", ""),
        # what moved most first, what is proven before a little more, and the other way than the step last
        ("gc 0>9; tp 50>45", "gc_pauses comm_slower.tp"), ("gc 0>5; tp 50>59", "comm_slower.tp gc_pauses"),
        ("gc 0>9; trailing 0>10", "gc_pauses row.trailing"),
        ("gc 0>9; trailing 0>20", "row.trailing gc_pauses"),
        # two hundredths of what moved, and a wall without a cause
        ("trailing 0>99; gc 0>1", "row.trailing"), ("trailing 0>98; gc 0>2", "row.trailing gc_pauses"),
        ("trailing 0>90; dependency_stalled 0>10", "row.trailing row.dependency_stalled"),
        ("trailing 0>91; dependency_stalled 0>9", "row.trailing"),
        # less than steps vary by, and less than 20 ms, a hundredth of the step
        ("gemm 2000; gc 0>9; noise 0>10", "row.launch_starved.gc"),
        ("gemm 2000; gc 0>10; noise 0>10", "gc_pauses"), ("gemm 2000; gc 0>9; noise 0>8", "gc_pauses"),
        ("gemm 2000; gc 0>21; noise 0>50", "gc_pauses"),
        # what the trace shows is no cause of its own, but for the GPU
        ("attention 5>9 none; + detected.short_kernel_frac 1>2", "row.compute.attention"),
        ("attention 5>9 none; + gpu H100>H200", "gpu"),
        # a change that a rule speaks for is none beside it
        ("gc 1>9; gemm 40; + train.manual_gc true>false", "gc_pauses"),
        ("dp_all_gather 5>15; gemm 40; + ddp.bucket_size 1>2", "comm_slower.dp"),
        # the first eight
        (
            "tp 5>25; cp 5>24; pp_p2p 5>23; all_reduce 5>22; other_comm 5>21; ep_dispatch 5>20; gc 5>19;"
            " lazy_init 5>18; profiler 5>17",
            "comm_slower.tp comm_slower.cp comm_slower.pp comm_slower.all_reduce comm_slower.other"
            " comm_slower.ep gc_pauses lazy_init",
        ),
    ],
)  # fmt: skip
def test_suspects_stand_in_the_order_of_what_they_explain(said: str, expected: str) -> None:
    assert ids(said.replace("\n", "")) == expected.split()


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (False, True, 1), ("none", "local", 1), (("attn",), (), -1), (("attn",), ("mlp",), 0), (2, 4, 1),
        ("selective", "full", 1), ("bf16_mixed", "bf16_with_mxfp8_mixed", 1), ("local", "full_iteration", 0),
        (None, None, 0), ("fp8", "bf16", -1), (1.0, 0.5, -1),
    ],
)  # fmt: skip
def test_a_setting_goes_up_down_or_cannot_be_said(base: object, new: object, expected: int) -> None:
    there, back = change("knob", base, new), change("knob", new, base)  # type: ignore[arg-type]
    assert (way(there), way(back)) == (expected, -expected)


def test_workers_of_a_loader_are_the_same_only_where_they_are() -> None:
    sides = {"4 > workers=1": None, "4": "4", "null > workers=1": None, "null": None}
    found = {
        one: VIEWED.named("loader_kept").of(View(told_of(f"gemm 4; loads workers={one}"))) for one in sides
    }
    assert found == sides


def test_findings_of_a_dispatcher_are_those_of_the_side_after() -> None:
    both = [double(ConfigFinding, id=id_) for id_ in ("dispatcher-fallback", "gc")]
    assert shown.findings(View(facts(new_result={"config_findings": (*both,)}))) == ("dispatcher-fallback",)


def test_of_several_kernels_in_a_place_the_first_is_named_with_its_own_count() -> None:
    kernels = [Worked("first", "compute.gemm", 3, 2 * MS), Worked("second", "compute.gemm", 5, MS)]
    assert ways._done(kernels, 3 * MS) == "3.00 ms (3 x first and others)"
    assert ways._done((), 0).endswith("(none)")
