"""Which modules to recompute: labels, what makes each legal, and the order by memory pressure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from heuristics.guides.modules import (
    INSIDE_MOE,
    MODULES,
    OF_EXPERTS,
    Module,
    is_short,
    recomputed_now,
)
from heuristics.guides.table import Refusal, Row, fire, table
from heuristics.run.run import Run

Granularity = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True)
class RecomputeChoice:
    """What the table says of a run.

    `modules`: Megatron-Core's labels to recompute, empty without selective recompute; `row`: the row that
    fired. `then`: labels to add one at a time while the run does not fit. `refused`: labels that are not to
    be used, with the reason. `asks`: options that would tell more.
    """

    granularity: Granularity
    modules: tuple[str, ...]
    row: Row
    then: tuple[str, ...]
    refused: tuple[Refusal, ...]
    asks: tuple[str, ...]


def choose_recompute(run: Run) -> RecomputeChoice:
    """Look the run up. Labels whose need is unknown are taken only where nearly every MoE run meets it."""
    now = recomputed_now(run)
    row = fire(table("recompute")[run.config.guidance], run, lambda row: row.id).row
    modules, then = _next(run, row, now)
    asks = ["--memory-tight"] if run.config.memory_tight is None else []
    asks += [module.option for module in MODULES.values() if module.option and module.legal(run) is None]
    return RecomputeChoice(
        granularity=cast(Granularity, row.how),
        modules=modules,
        row=row,
        then=then,
        refused=tuple(_refusals(run)),
        asks=tuple(dict.fromkeys(asks)),
    )


def _next(run: Run, row: Row, now: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels to recompute and labels to add after; under pressure, one more than are recomputed now.

    What is recomputed beside a whole MoE layer stays when that layer goes.
    """
    start = [label for label in row.answer if _takes(run, MODULES[label])]
    then = [label for label in row.then if _takes(run, MODULES[label])]
    if is_short(run) or "moe" in now:
        start += [label for label in then if label in now and label != "moe"]
    then = [label for label in then if label not in start]
    if then and (not start or (is_short(run) and set(start) <= now)):
        start.append(then.pop(0))
    if "moe" in start:
        start = [label for label in start if label not in INSIDE_MOE]
    return tuple(start), tuple(then)


def _takes(run: Run, module: Module) -> bool:
    legal = module.legal(run)
    return not module.avoid and (module.usual if legal is None else legal)


def _refusals(run: Run) -> Iterator[Refusal]:
    for module in MODULES.values():
        legal = module.legal(run)
        if module.label in OF_EXPERTS and run.active.moe is False:
            continue
        if module.avoid and legal is not False:
            yield Refusal(module.label, module.avoid, module.source)
        elif legal is False:
            yield Refusal(module.label, f"needs {module.needs}", module.source)
        elif legal is None and not module.usual:
            yield Refusal(module.label, f"needs {module.needs}, which is unknown here", module.source)
