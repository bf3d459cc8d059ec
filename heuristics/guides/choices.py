"""What the guides choose for a run: which row decides, why, what goes with it, and the other
edition.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from heuristics.config.about import Guidance
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.dispatcher import choose_dispatcher
from heuristics.guides.precision import ROUTER, choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.guides.table import EDITIONS, Chosen
from heuristics.result.judged import Choice
from heuristics.run.run import Run
from heuristics.words import say
from traces.sections.section import copied
from traces.settings.spelling import spell


def choose_all(run: Run) -> tuple[Choice, ...]:
    """Dispatcher, CUDA graphs, precision and recompute of a run, as far as they are a question
    there.
    """
    choosers = [_graphs, _precision]
    if run.active.moe is not False:
        choosers.insert(0, _dispatcher)
    if run.tells("recompute_matters"):
        choosers.append(_recompute)
    return tuple(map(partial(_in_both, run), choosers))


def _in_both(run: Run, choose: Callable[[Run, Guidance], Choice]) -> Choice:
    """A choice with what the other edition chooses, where that is another answer."""
    (edition,) = {*EDITIONS} - {run.config.guidance}
    mine, other = choose(run, run.config.guidance), choose(run, edition)
    if other.answer == mine.answer:
        return mine
    return replace(mine, other=other.answer, other_rule=other.rule, other_reason=other.reason)


def _choice(about: str, answer: str, chosen: Chosen) -> Choice:
    why, *notes = chosen.notes or (chosen.row.reason,)
    return copied(
        Choice,
        chosen.row,
        about=about,
        answer=answer,
        rule=chosen.rule,
        other="",
        settings=(),
        asks=chosen.asks,
        refused=tuple(f"{refusal.what}: {refusal.reason}" for refusal in chosen.refused),
        reason=why,
        notes=tuple(notes),
        then=chosen.then,
    )


def _dispatcher(run: Run, edition: Guidance) -> Choice:
    chosen = choose_dispatcher(run, edition)
    answer = chosen.first or say("guides.measure", candidates=" against ".join(chosen.candidates))
    candidates = () if chosen.first else chosen.candidates
    made = _choice("dispatcher", answer, chosen)
    return replace(made, settings=chosen.extras, candidates=candidates, before=chosen.before)


def _graphs(run: Run, edition: Guidance) -> Choice:
    chosen = choose_graphs(run, edition)
    settings = spell(chosen.needs, run.settings.framework or "megatron_lm", run.config.core_text)
    made = _choice("cuda_graphs", " ".join((chosen.impl, *chosen.modules)), chosen)
    if chosen.impl != "none" or not chosen.refused:
        return replace(made, settings=settings)
    first = chosen.refused[0]
    why = say("guides.graphs-refused", what=first.what, reason=first.reason)
    return replace(made, settings=settings, reason=why, notes=(made.reason, *made.notes))


def _precision(run: Run, edition: Guidance) -> Choice:
    chosen = choose_precision(run, edition)
    made = _choice("precision", " or ".join(chosen.candidates), chosen)
    if chosen.recipe == "bf16" or run.active.moe is False:
        return made
    return replace(made, notes=(say("guides.router-stays", router=ROUTER),))


def _recompute(run: Run, edition: Guidance) -> Choice:
    chosen = choose_recompute(run, edition)
    return _choice("recompute", " ".join((chosen.granularity, *chosen.modules)), chosen)
