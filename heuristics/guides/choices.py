"""What the guides choose for a run, with the rule that fired and what their other edition says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heuristics.guides.cuda_graphs import GraphChoice, choose_graphs
from heuristics.guides.dispatcher import DispatcherChoice, choose_dispatcher
from heuristics.guides.precision import choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import Run


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice. `answer` in words; `other` is the other edition's answer, empty where it says the same.

    `settings` go with it, `asks` are the options that would settle what is unknown, `refused` says what is
    ruled out and why.
    """

    about: str
    answer: str
    rule: str
    other: str = ""
    settings: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def choose_all(run: Run) -> tuple[Choice, ...]:
    """Dispatcher, CUDA graphs, precision and recompute of a run."""
    found = (_dispatcher(run), _graphs(run), _precision(run), _recompute(run))
    return tuple(replace(one, other="") if one.other == one.answer else one for one in found)


def _dispatcher(run: Run) -> Choice:
    found = choose_dispatcher(run)
    refused = tuple(f"{one.what}: {one.reason}" for one in found.refused)
    other = _first(found.other) if found.other else ""
    return Choice("dispatcher", _first(found), found.rule, other, found.extras, found.asks, refused)


def _first(choice: DispatcherChoice) -> str:
    return choice.first or f"measure {' against '.join(choice.candidates)}"


def _graphs(run: Run) -> Choice:
    found = choose_graphs(run)
    refused = tuple(f"{one.what}: {one.reason}" for one in found.refused)
    other = _captured(found.other) if found.other else ""
    return Choice("cuda_graphs", _captured(found), found.rule, other, (), found.asks, refused)


def _captured(choice: GraphChoice) -> str:
    return f"{choice.impl} {' '.join(choice.modules)}".strip()


def _precision(run: Run) -> Choice:
    found = choose_precision(run)
    mine, others = (found.seed, found.main) if run.config.guidance == "seed" else (found.main, found.seed)
    other = " or ".join(others) if found.profiles_differ else ""
    return Choice("precision", " or ".join(mine), found.rule, other, asks=found.asks)


def _recompute(run: Run) -> Choice:
    found = choose_recompute(run)
    refused = tuple(f"{one.what}: {one.reason}" for one in found.refused)
    answer = f"{found.granularity} {' '.join(found.modules)}".strip()
    return Choice("recompute", answer, found.rule, asks=found.asks, refused=refused)
