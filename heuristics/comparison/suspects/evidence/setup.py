"""What a run is set up as: its graphs, its precision, its GPU, its tensor parallelism."""

from collections.abc import Sequence
from typing import Final

from heuristics.comparison.suspects.causes import named
from heuristics.comparison.suspects.direction import way
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View
from traces.limits import Limit
from traces.missing import known
from traces.spelling import percent

LESS: Final = Limit(
    0.05, "fraction of kernel work", "ours: a judgement: what one small module of a layer holds"
)


def graph_shares(view: View) -> tuple[float, float] | None:
    """Kernel work in CUDA graphs before and after, as a fraction; None where a side does not tell it."""
    before, after = (known(rank.detected.graph_share_frac) for rank in (view.before, view.after))
    return None if before is None or after is None else (before, after)


def replays_less(view: View) -> Signs:
    """Less kernel work in CUDA graphs; whether a setting of them changed."""
    shares = graph_shares(view)
    if shares is None:
        return ()
    before, after = shares
    if before - after < LESS.value:
        return None
    sentence = view.arrow("kernel work in CUDA graphs", percent(before), percent(after))
    if view.changes(*named("@graphs")) or known(view.facts.new.configuration) is None:
        return (sentence,)
    return sentence, "no setting of CUDA graphs changed: graphs that are asked for do not replay"


def fewer_bits(view: View) -> Signs:
    """Matrix work in a narrower precision, or casts that are new."""
    signs: tuple[str, ...] = ()
    for change in view.changes("detected.precision"):
        if way(change) == -1:
            return None
        signs += (view.arrow("precision in the trace", change.base, change.new),)
    none, some = view.counts.get("compute.quantize", (0.0, 0.0))
    if not none and some:
        signs += (view.arrow("kernels that cast to fewer bits a step", "0", f"{some:.0f}"),)
    pair = [known(rank.detected.precision) for rank in (view.before, view.after)]
    return signs or (() if None in pair or pair[0] != pair[1] else None)


def on_gpu(names: Sequence[str], view: View) -> Signs:
    """Ruled out on another GPU than it was published for."""
    gpu = known(view.after.gpu)
    if gpu is None:
        return ()
    return (f"it was published for this GPU: {gpu}",) if any(name in gpu for name in names) else None


def tp_above_one(view: View) -> Signs:
    """Ruled out where tensor parallelism is known to be 1."""
    _, size = view.known("tensor_model_parallel_size", "tp")
    if not isinstance(size, int):
        return ()
    return (f"tensor parallelism of {size}",) if size > 1 else None
