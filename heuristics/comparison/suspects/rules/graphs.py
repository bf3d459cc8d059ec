"""CUDA graphs that replay less."""

from __future__ import annotations

from typing import Final

from heuristics.comparison.suspects.rules.rule import Rule, Signs, way_of
from heuristics.comparison.suspects.rules.signs import LAUNCHES
from heuristics.comparison.suspects.view import View
from heuristics.result.told import known
from heuristics.walls.words import percent
from traces.limits import Limit

LESS: Final = Limit(
    0.05, "fraction of kernel work", "ours: a judgement: what one small module of a layer holds"
)

KNOBS: Final = (
    "cuda_graph_*",
    "enable_cuda_graph",
    "external_cuda_graph",
    "optimizer.optimizer_cuda_graph",
    "graph_impl",
    "graph_modules",
)


def graph_shares(view: View) -> tuple[float, float] | None:
    """Kernel work in CUDA graphs before and after, as a fraction; None where a side does not tell it."""
    before, after = (known(rank.detected.graph_share_frac) for rank in (view.before, view.after))
    return None if before is None or after is None else (before, after)


def _replays_less(view: View) -> Signs:
    shares = graph_shares(view)
    if shares is None:
        return ()
    before, after = shares
    if before - after < LESS.value:
        return None
    sentence = view.arrow("kernel work in CUDA graphs", percent(before), percent(after))
    if view.changes(*KNOBS) or known(view.facts.new.configuration) is None:
        return (sentence,)
    return sentence, "no setting of CUDA graphs changed: graphs that are asked for do not replay"


GRAPHS: Final = Rule(
    id="graphs_stopped",
    title="CUDA graphs stopped replaying, or cover less",
    mirrored="CUDA graphs replay more",
    slower=(*LAUNCHES, "launch_starved.sync", "launch_starved.token_count_sync"),
    faster=("compute.graph_replay", "graph_opaque"),
    seen=_replays_less,
    said=KNOBS,
    says=way_of(-1),
    next="run the new side with cuda_graph_impl and cuda_graph_modules of the base, nothing else changed",
    source=(
        "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8: 610.71 to 663.27 TFLOPS "
        "with graphs; Megatron-Bridge, docs/training/cuda-graphs.md: up to 30 % of the step"
    ),
)

RULES: Final = (GRAPHS,)
