"""Which modules to recompute, in the order by memory pressure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from heuristics.config.about import Guidance
from heuristics.guides.modules import INSIDE_MOE, MODULES, OF_EXPERTS, is_short, meets, recomputed_now
from heuristics.guides.table import Chosen, Refusal, Row, fire
from heuristics.run.run import Run
from heuristics.words import say

Granularity = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeChoice(Chosen):
    """Megatron-Core's labels to recompute, none without selective recompute."""

    granularity: Granularity
    modules: tuple[str, ...]


def choose_recompute(run: Run, edition: Guidance | None = None) -> RecomputeChoice:
    """Look the run up. Labels whose need is unknown are taken only where nearly every MoE run meets it."""
    row = fire("recompute", run, edition).row
    modules, then = _next(run, row, recomputed_now(run))
    asks = ["--memory-tight"] if run.config.memory_tight is None else []
    asks += [one.option for label, one in MODULES.items() if one.option and meets(label, run) is None]
    return RecomputeChoice(
        row=row,
        granularity=cast(Granularity, row.how),
        modules=modules,
        then=then,
        refused=tuple(_refusals(run)),
        asks=tuple(dict.fromkeys(asks)),
    )


def _next(run: Run, row: Row, now: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels to recompute and labels to add after; under pressure, one more than are recomputed now.

    What is recomputed beside a whole MoE layer stays when that layer goes.
    """
    start = [label for label in row.answer if _takes(run, label)]
    then = [label for label in row.then if _takes(run, label)]
    if is_short(run) or "moe" in now:
        start += [label for label in then if label in now and label != "moe"]
    then = [label for label in then if label not in start]
    if then and (not start or (is_short(run) and set(start) <= now)):
        start.append(then.pop(0))
    if "moe" in start:
        start = [label for label in start if label not in INSIDE_MOE]
    return tuple(start), tuple(then)


def _takes(run: Run, label: str) -> bool:
    module, is_legal = MODULES[label], meets(label, run)
    return not module.avoid and (module.usual if is_legal is None else is_legal)


def _refusals(run: Run) -> Iterator[Refusal]:
    for label, module in MODULES.items():
        if label in OF_EXPERTS and run.active.moe is False:
            continue
        is_legal = meets(label, run)
        if module.avoid and is_legal is not False:
            yield Refusal(label, module.avoid, module.source)
        elif is_legal is False or (is_legal is None and not module.usual):
            needs = say("guides.needs" if is_legal is False else "guides.needs-unknown", needs=module.needs)
            yield Refusal(label, needs, module.source)
