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
from heuristics.guides.facts import ep_share, is_low_precision, options_for, pipeline_dominates
from heuristics.guides.table import OTHER, Facts, Refusal, Row, fire, table
from heuristics.run.given import Guidance
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.limits import Limit
from traces.settings.printed import change_of
from traces.settings.spelling import in_section, spell
from traces.spelling import percent

ALLTOALL: Final = "alltoall"
FLEX: Final = ("deepep", "hybridep")
SMALL_EP: Final = Limit(
    8,
    "expert-parallel ranks",
    "ours: no guide has numbers; a maintainer prefers all-to-all up to 8 (Megatron-LM issue 1456), one node",
)
LARGE_EP: Final = Limit(
    32,
    "expert-parallel ranks",
    "ours: four nodes of eight; the EP of the guides' large DeepSeek-V3 runs and up",
)
NOT_FIRST: Final = "not-first-knob"
"""The rule that keeps a dispatcher whose cost is small; no row, as it rests on what was measured."""


@dataclass(frozen=True, slots=True)
class DispatcherChoice:
    """What the guide chooses for a run.

    `first`: `alltoall`, `deepep` or `hybridep`; the dispatcher the run has, where it should be kept; or None
    where there is no winner: measure the `candidates`. `rule` names the row that fired, `guidance` its
    edition. `extras`: settings that go with it. `notes`: why, first, then what else matters. `before`: fixes
    that come before a swap. `asks`: options that would settle what is unknown and matters. `refused`:
    backends ruled out, why, and by whom. `other`: the other edition's choice, where it differs.
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


def choose_dispatcher(run: Run) -> DispatcherChoice:
    """Choose for a run by its guidance; the other edition's choice stands beside it where it differs."""
    choice = _choose(run, run.config.guidance)
    other = _choose(run, OTHER[run.config.guidance])
    same = (choice.first, choice.candidates) == (other.first, other.candidates)
    return choice if same else replace(choice, other=other)


def _choose(run: Run, guidance: Guidance) -> DispatcherChoice:
    fired = fire(
        table("dispatcher")[guidance],
        dispatcher_facts(run),
        lambda row: _allowed(row, refusals(run, row.answer)),
    )
    row = fired.rule
    refused = refusals(run, row.answer)
    first, candidates = _allowed(row, refused)
    out = {refusal.what: refusal.reason for refusal in refused}
    notes = [row.reason]
    if row.winner and (why := out.get(row.answer[0])):
        instead = first or " or ".join(candidates)
        notes.insert(0, f"{row.answer[0]} cannot be used here ({why}); {instead} instead")
    choice = DispatcherChoice(
        first,
        candidates,
        row.id,
        guidance,
        notes=tuple(notes),
        asks=options_for(fired.open_facts),
        refused=refused,
        sources=(row.source,),
    )
    return _complete(run, _swap_minded(run, choice), row)


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


def _allowed(row: Row, refused: Sequence[Refusal]) -> tuple[str | None, tuple[str, ...]]:
    """The first candidate, None where several are left without a winner; and all that are left."""
    out = {refusal.what for refusal in refused}
    candidates = tuple(name for name in row.answer if name not in out) or (ALLTOALL,)
    return (candidates[0] if row.winner or len(candidates) == 1 else None), candidates


def _swap_minded(run: Run, choice: DispatcherChoice) -> DispatcherChoice:
    """Keep the run's dispatcher, or name what comes before a swap, where a swap would be proposed."""
    now = run.active.dispatcher
    if now in ("none", "unknown") or now == choice.first or run.config.stage == "bring_up":
        return choice
    share = ep_share(run)
    if share is not None and share < WALL.value and not run.config.memory_tight:
        note = (
            f"expert all-to-all costs only {percent(share)} of the step: another dispatcher cannot save much"
        )
        return replace(choice, first=now, candidates=(now,), rule=NOT_FIRST, notes=(note,), asks=())
    before, asks = list(choice.before), list(choice.asks)
    if run.config.hardware_class == "nvl72" and not run.config.cpu_bound_to_numa:
        if run.config.cpu_bound_to_numa is None:
            asks += options_for(["cpu_binding"])
        else:
            before.append("HST-1")
    if pipeline_dominates(run):
        before.append("COM-6")
    return replace(choice, before=tuple(before), asks=tuple(asks))


_BEFORE_NOTES: Final = {
    "HST-1": "bind ranks to their CPU sockets first: on GB200 and GB300 this can save as much time",
    "COM-6": "pipeline waiting costs more than expert all-to-all: a poor PP or VPP layout can erase the gain",
}


def _complete(run: Run, choice: DispatcherChoice, row: Row) -> DispatcherChoice:
    """Add what goes with the dispatcher: settings, what it asks of the rest, what is still to be given."""
    backends = (choice.first,) if choice.first else choice.candidates
    extras = [extra for backend in backends for extra in backend_extras(run, backend)]
    notes = [*choice.notes, *(_BEFORE_NOTES[fix] for fix in choice.before)]
    notes += [note for backend in backends for note in backend_notes(run, backend)]
    if is_low_precision(run):
        notes.append(
            "in low precision, communication and host overhead take a larger share: after a change of "
            "precision, measure again before you change the dispatcher"
        )
    asks = list(choice.asks)
    if "hybridep" in backends:
        missing = {"ep": run.config.ep, "nvlink_domain": run.config.nvlink_domain}
        asks += options_for(name for name, value in missing.items() if value is None)
    if choice.rule == row.id:
        extras += _of_framework(row.settings, run)
    return replace(choice, extras=_once(extras), notes=_once(notes), asks=_once(asks))


def _of_framework(flags: Sequence[str], run: Run) -> Sequence[str]:
    """Flags of Megatron-LM as the run's framework takes them."""
    if run.settings.framework != "megatron_bridge":
        return flags
    return spell(
        in_section(change_of(flags, "megatron_lm"), run.settings), "megatron_bridge", run.config.core_text
    )


def _once(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
