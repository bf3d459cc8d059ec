"""What saves memory and costs time: recompute, offload, the allocator, and copies in general."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heuristics.comparison.figures import milliseconds
from heuristics.comparison.suspects.rules.rule import Rule, Signs, way_of
from heuristics.comparison.suspects.rules.signs import CLASSES, HOST, LAUNCHES, grew
from heuristics.comparison.suspects.view import View
from heuristics.result.rank import Memory, Rank
from heuristics.result.told import Told, known
from traces.limits import Limit

VISIBLE: Final = Limit(
    0.005,
    "fraction of the step",
    "ours: as heuristics.comparison.difference.noise, below which rows are not told from noise",
)
RECOMPUTE_KNOBS: Final = ("recompute_*", "moe_layer_recompute")
OFFLOAD_KNOBS: Final = (
    "fine_grained_activation_offloading",
    "offload_modules",
    "activation_offload_fraction",
    "cpu_offloading*",
    "optimizer.optimizer_cpu_offload",
    "optimizer.optimizer_offload_fraction",
)


def _per_step(rank: Rank, read: Callable[[Memory], Told[int]]) -> float | None:
    value = known(read(rank.memory))
    return None if value is None else value / len(rank.lengths_ns)


def _grown(view: View, read: Callable[[Memory], Told[int]], words: str) -> Signs:
    """A time of the memory section that grew visibly; ruled out where it shrank as much."""
    before, after = _per_step(view.before, read), _per_step(view.after, read)
    if before is None or after is None:
        return ()
    step_ns = sum(view.before.lengths_ns) / len(view.before.lengths_ns)
    if abs(after - before) < VISIBLE.value * step_ns:
        return None
    return (
        None
        if after < before
        else (view.arrow(words, milliseconds(round(before)), milliseconds(round(after))),)
    )


def _recomputes_more(view: View) -> Signs:
    signs = _grown(view, lambda memory: memory.recompute_ns, "recompute a step")
    if not signs:
        return signs
    before, after = (sorted(known(rank.memory.recompute_modules) or ()) for rank in (view.before, view.after))
    words = [", ".join(modules) or "none" for modules in (before, after)]
    return (*signs, view.arrow("recomputed modules", *words))


def _offloads_more(view: View) -> Signs:
    return _grown(
        view, lambda memory: memory.offload_exposed_ns, "offload copies with nothing beside them a step"
    )


def _copies_more(view: View) -> Signs:
    rows = grew(view, "exposed_copy.*")
    if not rows or _offloads_more(view):
        return None
    before, after = sum(row.base_count for row in rows), sum(row.new_count for row in rows)
    return (view.arrow("copies a step of these kinds", f"{before:.0f}", f"{after:.0f}"),)


def _allocates(view: View) -> Signs:
    before, after = (
        _per_step(rank, lambda memory: memory.allocator_calls) for rank in (view.before, view.after)
    )
    if before is None or after is None or after <= before:
        return ()
    return (view.arrow("allocator calls a step", f"{before:.1f}", f"{after:.1f}"),)


RECOMPUTE: Final = Rule(
    id="recompute_more",
    title="More is recomputed",
    mirrored="Less is recomputed",
    slower=(*CLASSES, "exposed_comm.ep_*", "exposed_comm.sendrecv_unresolved", "exposed_comm.tp", *LAUNCHES),
    seen=_recomputes_more,
    said=RECOMPUTE_KNOBS,
    says=way_of(1),
    next="run the new side with the recompute settings of the base, if memory allows (MEM-2)",
    source=(
        "Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute at 067f987d: mlp with core_attn "
        "-17.3 % of throughput"
    ),
)
OFFLOAD: Final = Rule(
    id="offload_more",
    title="More is offloaded to the host",
    mirrored="Less is offloaded to the host",
    slower=("exposed_copy.*", "compute.optimizer", *HOST, "launch_starved.sync"),
    seen=_offloads_more,
    said=OFFLOAD_KNOBS,
    says=way_of(1),
    next="run the new side with offloading as on the base; overlap the copies, or offload less",
    source="Megatron-Bridge, docs/training/cpu-offloading.md at 067f987d: 1.9 to 4.2 times the step",
)
COPIES: Final = Rule(
    id="copies_exposed",
    title="More time goes to copies that run alone",
    mirrored="Less time goes to copies that run alone",
    slower=("exposed_copy.*",),
    seen=_copies_more,
    needs="seen",
    next="find the copies in the new trace by kind and step, and the call that starts them",
    source="ours: what the rows say",
)
ALLOCATOR: Final = Rule(
    id="allocator",
    title="The allocator is at work in steps: memory is tight",
    mirrored="The allocator is less at work in steps",
    slower=("launch_starved.allocator",),
    seen=_allocates,
    said=("env.PYTORCH_CUDA_ALLOC_CONF", "env.PYTORCH_ALLOC_CONF", "train.empty_unused_memory_level"),
    next="set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (MEM-1) on the new side and record again",
    source="Megatron-Bridge, skills/nemo-mbridge-perf-memory-tuning at 067f987d: fragmentation",
)

RULES: Final = (RECOMPUTE, OFFLOAD, COPIES, ALLOCATOR)
