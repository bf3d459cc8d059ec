"""What the guides choose for a run: which row decides, why, what goes with it, and the other edition."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from heuristics.guides.cuda_graphs import GraphChoice, choose_graphs
from heuristics.guides.dispatcher import DispatcherChoice, choose_dispatcher
from heuristics.guides.modules import recomputed_now
from heuristics.guides.precision import ROUTER, PrecisionChoice, choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.guides.table import Refusal
from heuristics.result.judged import Choice
from heuristics.run.run import Run
from traces.settings.spelling import spell

FoundT = TypeVar("FoundT")


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
        about="dispatcher",
        answer=found.first or f"measure {' against '.join(found.candidates)}",
        other="",
        rule=found.rule,
        reason=found.notes[0],
        source=found.sources[0],
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
        about="cuda_graphs",
        answer=f"{found.impl} {' '.join(found.modules)}".strip(),
        other="",
        rule=found.rule,
        reason=why,
        source=found.sources[0],
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
        about="precision",
        answer=" or ".join(found.candidates),
        other="",
        settings=(),
        refused=(),
        rule=found.row.id,
        reason=found.row.reason,
        source=found.row.source,
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
        about="recompute",
        answer=f"{found.granularity} {' '.join(found.modules)}".strip(),
        other="",
        settings=(),
        rule=found.row.id,
        reason=found.row.reason,
        source=found.row.source,
        asks=found.asks,
        refused=_reasons(found.refused),
        then=found.then,
    )


def _reasons(refused: Iterable[Refusal]) -> tuple[str, ...]:
    return tuple(f"{one.what}: {one.reason}" for one in refused)
