"""Which modules to recompute, in the order by memory pressure."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, cast

from heuristics.config.about import Guidance
from heuristics.config.logic import each_once
from heuristics.guides.memory_use import HEAD_ROOM, capacity_bytes, estimated
from heuristics.guides.modules import (
    CORE_ATTENTION,
    INSIDE_MOE,
    MODULES,
    OF_EXPERTS,
    attention_unfused,
    is_avoided,
    meets,
    recomputed_now,
)
from heuristics.guides.table import Chosen, GuideRow, Refusal, fire
from heuristics.result.layouts import Granularity
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import HALF_A_WALL
from traces.missing import Missing
from traces.texts import Texts

_BY_ESTIMATE: Final = "recompute-most-freed"
"""The row whose labels the estimate of memory chooses."""


@frozen
class RecomputeChoice(Chosen):
    """Megatron-Core's labels to recompute, none without selective recompute."""

    granularity: Granularity
    modules: Texts


def choose_recompute(run: Run, edition: Guidance | None = None) -> RecomputeChoice:
    """Look the run up. Labels whose need is unknown are taken only where nearly every MoE run meets
    it.
    """
    row = fire("recompute", run, edition).row
    modules, then = _next(run, row, recomputed_now(run))
    if row.id == _BY_ESTIMATE:
        modules = most_freed(run, modules, then)
        then = tuple(label for label in then if label not in modules)
    asks = ["--memory-tight"] if run.config.memory_tight is None else []
    for label, module in MODULES.items():
        if module.option and meets(label, run) is None:
            asks.append(module.option)
    return RecomputeChoice(
        row=row,
        granularity=cast(Granularity, row.how),
        modules=modules,
        then=then,
        refused=tuple(_refusals(run)),
        asks=each_once(asks),
    )


def _next(run: Run, row: GuideRow, now: frozenset[str]) -> tuple[Texts, Texts]:
    """Labels to recompute and labels to add after; under pressure, one more than are recomputed
    now.

    What is recomputed beside a whole MoE layer stays when that layer goes.
    """
    first = (CORE_ATTENTION,) if row.how == "selective" and attention_unfused(run) else ()
    start, then = list(filter(partial(_takes, run), (*first, *row.answer))), list[str]()
    stays = run.tells("short_now") or "moe" in now
    for label in row.then:
        if label not in start and _takes(run, label):
            (start if stays and label in now and label != "moe" else then).append(label)
    if then and (not start or (run.tells("short_now") and set(start) <= now)):
        start.append(then.pop(0))
    if "moe" in start:
        start = [label for label in start if label not in INSIDE_MOE]
    return tuple(start), tuple(then)


def most_freed(run: Run, start: Sequence[str], then: Sequence[str]) -> Texts:
    """What is recomputed now and the fewest labels beside it that the estimate fits with, largest
    first.

    All that frees anything where nothing suffices; whole MoE layers only then. The order of the
    table where sizes are unknown.
    """
    running = recomputed_now(run)
    now = [name for name in MODULES if name in running]
    sizes = {}
    for label in (*start, *then):
        if label not in now and label != "moe" and (size := _held(run, (*now, label))) is not None:
            sizes[label] = size
    before, capacity = _held(run, now), capacity_bytes(run)
    if before is None or capacity is None or not sizes:
        return tuple(start)
    chosen = [*now]
    least = HALF_A_WALL.value * (before - capacity * (1 - HEAD_ROOM.value))
    for label in sorted(sizes, key=sizes.__getitem__):
        if before - sizes[label] > max(0, least):
            chosen.append(label)
        if (_held(run, chosen) or 0) <= capacity * (1 - HEAD_ROOM.value):
            break
    return tuple(name for name in MODULES if name in chosen) or tuple(start)


def _held(run: Run, labels: Sequence[str]) -> int | None:
    """Bytes of the fullest rank with some labels recomputed, by the estimate."""
    changes = {
        "recompute_granularity": "selective" if labels else None,
        "recompute_modules": tuple(labels),
    }
    estimate = estimated(run.changed(changes))
    if isinstance(estimate, Missing):
        return None
    return estimate.total_bytes


def _takes(run: Run, label: str) -> bool:
    module, is_legal = MODULES[label], meets(label, run)
    return not is_avoided(label, run) and (module.usual if is_legal is None else is_legal)


def _refusals(run: Run) -> Iterator[Refusal]:
    for label, module in MODULES.items():
        if label in OF_EXPERTS and run.active.moe is False:
            continue
        is_legal = meets(label, run)
        if is_avoided(label, run) and is_legal is not False:
            yield Refusal(label, module.avoid, module.source)
        elif is_legal is False or (is_legal is None and not module.usual):
            needs = say(
                "guides.needs" if is_legal is False else "guides.needs-unknown", needs=module.needs
            )
            yield Refusal(label, needs, module.source)
