"""The host-overhead wall: the GPU waits for the CPU to launch its work.

What is removed to measure it: Python between calls, launch calls, the overhead of synchronising
calls, arrival, garbage collection and data loading take no time; small copies that only feed a
synchronising call go. How we tell: by replay, capped by what the account lays on the host.
Allocator calls belong to the memory wall.

What it is not: time the host spends in cudaStreamSynchronize while the GPU works, nor many launches
as such: a host that is ahead of its GPU costs nothing. References: Megatron-Bridge, skill
nsys-analysis (launch-starved); Megatron-Core's MoE guide (CUDA graphs).
"""

from heuristics.figures.figures import Ranks
from heuristics.result.judged import Wall
from heuristics.walls.price import Priced, judged, shown, shown_frac


def judge(ranks: Ranks, priced: Priced) -> Wall:
    evidence = shown_frac("launch_starved_frac", ranks)
    evidence += shown_frac("masked_frac", ranks)
    if graphs := max(rank.observed.graph_frac or 0.0 for rank in ranks):
        evidence.append(shown("graph_share_frac", graphs))
    return judged("host_overhead", priced, ranks, evidence)
