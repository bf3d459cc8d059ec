"""What the guides choose for a run: which row decides, why, what goes with it, and the other edition."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from heuristics.guides.cuda_graphs import GraphChoice, choose_graphs
from heuristics.guides.dispatcher import DispatcherChoice, choose_dispatcher
from heuristics.guides.modules import recomputed_now
from heuristics.guides.precision import ROUTER, PrecisionChoice, choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.guides.table import Refusal
from heuristics.run.run import Run
from traces.settings.spelling import spell

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice. `answer` in words; `rule`: the row that decides, `reason`: why it does, by `source`.

    `candidates`: what to measure against each other, where the guide has no winner. `settings` go with it,
    `notes` say what else matters. `before`: fixes that come first. `then`: what may be added, one at a time,
    `never`: what must not. `asks`: options that could change the choice. `refused`: what is ruled out and
    why. `other` is the other edition's answer, empty where it is the same, with its own rule and reason.
    """

    about: str
    answer: str
    rule: str
    reason: str
    source: str
    other: str = ""
    other_rule: str = ""
    other_reason: str = ""
    settings: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def choose_all(run: Run) -> tuple[Choice, ...]:
    """Dispatcher, CUDA graphs, precision and recompute of a run, as far as they are a question there."""
    chosen: list[Choice] = []
    if run.active.moe is not False:
        dispatcher = choose_dispatcher(run)
        chosen.append(_beside(_dispatcher(dispatcher), dispatcher.other, _dispatcher))
    graphs, precision = choose_graphs(run), choose_precision(run)
    chosen.append(_beside(_graphs(run, graphs), graphs.other, partial(_graphs, run)))
    chosen.append(_without_experts(run, _beside(_precision(precision), precision.other, _precision)))
    if _recompute_matters(run):
        chosen.append(_recompute(run))
    return tuple(chosen)


def _without_experts(run: Run, choice: Choice) -> Choice:
    """A choice whose notes are about experts, for a run that may have none."""
    return replace(choice, notes=()) if run.active.moe is False else choice


def _beside(mine: Choice, found: FoundT | None, choice_of: Callable[[FoundT], Choice]) -> Choice:
    """A choice with what the other edition found, where that is another answer."""
    other = choice_of(found) if found is not None else mine
    if other.answer == mine.answer:
        return mine
    return replace(mine, other=other.answer, other_rule=other.rule, other_reason=other.reason)


def _dispatcher(found: DispatcherChoice) -> Choice:
    return Choice(
        "dispatcher",
        found.first or f"measure {' against '.join(found.candidates)}",
        found.rule,
        found.notes[0],
        found.sources[0],
        settings=found.extras,
        asks=found.asks,
        refused=_reasons(found.refused),
        candidates=() if found.first else found.candidates,
        notes=found.notes[1:],
        before=found.before,
    )


def _graphs(run: Run, found: GraphChoice) -> Choice:
    why, *notes = found.notes
    if found.impl == "none" and found.refused:
        first = found.refused[0]
        why, notes = f"{first.what} is refused here: {first.reason}", [why, *notes]
    return Choice(
        "cuda_graphs",
        f"{found.impl} {' '.join(found.modules)}".strip(),
        found.rule,
        why,
        found.sources[0],
        settings=spell(found.needs, run.settings.framework or "megatron_lm", run.config.core_text),
        asks=found.asks,
        refused=_reasons(found.refused),
        notes=tuple(notes),
        then=found.then,
        never=found.never,
    )


def _precision(found: PrecisionChoice) -> Choice:
    router = (
        f"the router stays in {ROUTER}; expert GEMMs gain most, small components need no low precision",
    )
    return Choice(
        "precision",
        " or ".join(found.candidates),
        found.row.id,
        found.row.reason,
        found.row.source,
        asks=found.asks,
        notes=router if found.recipe != "bf16" else (),
    )


def _recompute_matters(run: Run) -> bool:
    """Whether anything is known of memory pressure: it was given, or the run recomputes already."""
    known = run.config.memory_tight is not None or run.does_not_fit
    return known or run.active.recompute_full is True or bool(recomputed_now(run))


def _recompute(run: Run) -> Choice:
    found = choose_recompute(run)
    return Choice(
        "recompute",
        f"{found.granularity} {' '.join(found.modules)}".strip(),
        found.row.id,
        found.row.reason,
        found.row.source,
        asks=found.asks,
        refused=_reasons(found.refused),
        then=found.then,
    )


def _reasons(refused: Iterable[Refusal]) -> tuple[str, ...]:
    return tuple(f"{one.what}: {one.reason}" for one in refused)
