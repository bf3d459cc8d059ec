"""Which token dispatcher: NVIDIA's dispatcher guide as a table, less what a GPU or a version refuses.

The dispatcher is a fix for communication that is seen, not the first knob: where expert all-to-all costs
little, where the precision has just changed, where binding or the pipeline's layout comes first, the choice
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from heuristics.guides.dispatcher_extras import backend_extras, backend_notes
from heuristics.guides.dispatcher_limits import refusals
from heuristics.guides.dispatcher_rules import (
    ALLTOALL,
    FLEX,
    LARGE_EP,
    RULES,
    SKILLS,
    SMALL_EP,
    DispatcherRule,
)
from heuristics.guides.facts import ep_share, is_low_precision, options_for, pipeline_dominates
from heuristics.guides.table import Facts, Refusal, fire
from heuristics.run.given import Guidance
from heuristics.run.run import Run
from heuristics.walls.price import WALL


@dataclass(frozen=True, slots=True)
class DispatcherChoice:
    """What the guide says of a run.

    `first`: `alltoall`, `deepep` or `hybridep`; the dispatcher the run has, where it should be kept; or None
    where there is no winner: measure the `candidates`. `rule` names the row that fired, `guidance` its
    edition. `extras`: settings that go with it. `before`: fixes that come before a swap. `asks`: options that
    would settle what is unknown and matters. `refused`: backends ruled out, why, and by whom. `other`: what
    the other edition says, where it says another thing.
    """

    first: str | None
    candidates: tuple[str, ...]
    rule: str
    guidance: Guidance
    extras: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    sources: tuple[str, ...] = ()
    other: DispatcherChoice | None = None


_OTHER: Final[dict[Guidance, Guidance]] = {"seed": "main-2026-08", "main-2026-08": "seed"}


def choose_dispatcher(run: Run, earlier: Run | None = None) -> DispatcherChoice:
    """Choose for a run by its guidance; with an earlier run, a change of precision in between is minded."""
    choice = _choose(run, earlier, run.config.guidance)
    other = _choose(run, earlier, _OTHER[run.config.guidance])
    same = (choice.first, choice.candidates) == (other.first, other.candidates)
    return choice if same else replace(choice, other=other)


def _choose(run: Run, earlier: Run | None, guidance: Guidance) -> DispatcherChoice:
    facts = dispatcher_facts(run)
    fired = fire(RULES[guidance], facts, lambda rule: _allowed(rule, refusals(run, rule.candidates)))
    rule = fired.rule
    refused = refusals(run, rule.candidates)
    first, candidates = _allowed(rule, refused)
    notes = [rule.note]
    if rule.first in {refusal.what for refusal in refused}:
        notes.append(f"{rule.first} is refused here, so {first or ' or '.join(candidates)} takes its place")
    choice = DispatcherChoice(
        first,
        candidates,
        rule.id,
        guidance,
        notes=tuple(notes),
        asks=options_for(fired.open_facts),
        refused=refused,
        sources=(SKILLS[guidance],),
    )
    return _complete(run, _swap_minded(run, earlier, choice), rule)


def dispatcher_facts(run: Run) -> Facts:
    """What the table asks for. A run of unknown stage counts as tuned: it runs well enough to be recorded."""
    return {
        "package": True if run.active.dispatcher in FLEX else run.config.flex_package,
        "stage": run.config.stage or "tuned",
        "hardware": run.config.hardware_class,
        "family": run.config.family,
        "ep": _ep_size(run.config.ep),
        "crosses": run.config.spans_domain is True,
        "low_precision": is_low_precision(run),
        "memory_tight": run.config.memory_tight,
    }


def _ep_size(ep: int | None) -> str | None:
    if ep is None:
        return None
    return "small" if ep <= SMALL_EP.value else "large" if ep >= LARGE_EP.value else "medium"


def _allowed(rule: DispatcherRule, refused: Sequence[Refusal]) -> tuple[str | None, tuple[str, ...]]:
    out = {refusal.what for refusal in refused}
    candidates = tuple(name for name in rule.candidates if name not in out) or (ALLTOALL,)
    if rule.first in candidates or (rule.first is None and len(candidates) > 1):
        return rule.first, candidates
    return candidates[0], candidates


def _swap_minded(run: Run, earlier: Run | None, choice: DispatcherChoice) -> DispatcherChoice:
    """Keep the run's dispatcher, or name what comes before a swap, where a swap would be proposed."""
    now = run.active.dispatcher
    if now in ("none", "unknown") or now == choice.first or run.config.stage == "bring_up":
        return choice
    share = ep_share(run)
    if share is not None and share < WALL.value and not run.config.memory_tight:
        return _kept(
            choice, now, "not-first-knob", f"expert all-to-all costs {share:.1%}: a fix, not a first knob"
        )
    if earlier is not None and is_low_precision(earlier) is False and is_low_precision(run):
        return _kept(
            choice,
            now,
            "precision-just-changed",
            "lower precision makes communication and host weigh more: measure again, then decide",
        )
    before, asks = list(choice.before), list(choice.asks)
    if run.config.hardware_class == "nvl72" and not run.config.cpu_bound_to_numa:
        if run.config.cpu_bound_to_numa is None:
            asks += options_for(["cpu_binding"])
        else:
            before.append("HST-1")
    if pipeline_dominates(run):
        before.append("COM-6")
    return replace(choice, before=tuple(before), asks=tuple(asks))


def _kept(choice: DispatcherChoice, now: str, rule: str, note: str) -> DispatcherChoice:
    return replace(choice, first=now, candidates=(now,), rule=rule, notes=(note,), asks=())


_BEFORE_NOTES: Final = {
    "HST-1": "bind ranks to their CPU sockets first: on GB200 and GB300 that can matter as much",
    "COM-6": "pipeline waiting costs more than expert all-to-all: a poor PP or VPP layout can erase the gain",
}


def _complete(run: Run, choice: DispatcherChoice, rule: DispatcherRule) -> DispatcherChoice:
    """Add what goes with the dispatcher: settings, what it asks of the rest, what is still to be given."""
    backends = (choice.first,) if choice.first else choice.candidates
    extras = [extra for backend in backends for extra in backend_extras(run, backend)]
    notes = [*choice.notes, *(_BEFORE_NOTES[fix] for fix in choice.before)]
    notes += [note for backend in backends for note in backend_notes(run, backend)]
    if is_low_precision(run):
        notes.append("FP8 raises the weight of communication and host overhead")
    asks = list(choice.asks)
    if "hybridep" in backends:
        missing = {"ep": run.config.ep, "nvlink_domain": run.config.nvlink_domain}
        asks += options_for(name for name, value in missing.items() if value is None)
    if choice.rule == rule.id:
        extras += rule.extras
    return replace(choice, extras=_once(extras), notes=_once(notes), asks=_once(asks))


def _once(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
