"""What a fix is: a change of the configuration, what it needs, what it gave elsewhere, how to verify it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heuristics.fixes.asked_by_rules import asked_by_rules
from heuristics.fixes.change import Change, Knobs, lines
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import unseen_recipe
from heuristics.run.run import Run
from traces.sections.tables import WallId


@dataclass(frozen=True, slots=True)
class Gain:
    """A published measurement of the change, with the shape it was measured on and its source."""

    text: str
    source: str


def nothing_replayed(run: Run) -> tuple[str, ...]:
    """No kind of change: what the fix does to a run cannot be said as an edit of its replay."""
    return ()


def nothing_needed(run: Run) -> tuple[Precondition, ...]:
    """No advice."""
    return ()


def no_lines(run: Run) -> tuple[str, ...]:
    """No lines of code."""
    return ()


def unbounded(run: Run) -> float | None:
    """Nothing but the costs of the wall bounds what a fix changes."""
    del run
    return None


def never(run: Run) -> bool:
    """On no run."""
    return False


def one_change(run: Run) -> Mapping[str, Change]:
    """No arms: the fix is one change."""
    return {}


def the_same(fix: Fix, run: Run) -> Fix:
    """A fix whose title and costs depend on no run."""
    return fix


@dataclass(frozen=True, slots=True)
class Form:
    """A fix as plain PyTorch makes it.

    `code`: lines of a training script, with a word on where they stand; `inference`: those of a program that
    does not train, where they are others; `beside`: lines that only some runs need; `kinds`: of the wall's
    cost it acts on, where they are others than the fix's.
    """

    title: str
    code: tuple[str, ...]
    verify: str
    sources: tuple[str, ...]
    environment: tuple[str, ...] = ()
    versions: str = "every PyTorch release since 2.0"
    side_effects: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    advice: Callable[[Run], tuple[Precondition, ...]] = nothing_needed
    changes: Callable[[Run], tuple[str, ...]] = nothing_replayed
    inference: tuple[str, ...] = ()
    beside: Callable[[Run], tuple[str, ...]] = no_lines
    per_token: bool = False

    def code_for(self, run: Run) -> tuple[str, ...]:
        """The lines for a program that trains, or does not."""
        code = self.inference if self.inference and run.active.training is False else self.code
        return (*code, *self.beside(run))


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix of the catalogue. `id` is the catalogue's (COM-2).

    `advice`: what it needs to pay, and what no rule of a release asks; the rest of `preconditions` follows
    from its change.
    `kinds`: the kinds of the wall's cost that it acts on; empty means all. `direct`: those that, when they
    dominate, put it before the general order (None: its kinds). `wins`: those whose cost bounds its gain
    (None: its kinds). `changes`: the kinds of change, as `traces.replay.changes` names them, that it makes to
    a run. `excludes`: fixes that must not be in one plan with it; `same_as`: a fix of another wall that makes
    the same change. `versions`: from which release it is there, and where its names changed. `any_program`:
    it helps whatever runs, training or not. `pytorch`: the same for a run of plain PyTorch; `any_framework`:
    its environment serves every framework. A fix with neither is Megatron's alone. `arms`: the changes to
    measure against each other, by name, where no guide names a winner. `of_run`: the fix as it is for a run,
    where it turns a knob up for one and down for another. `with_room`: of memory's, one that helps where
    memory is not short: it uses the room, or makes no more of it. `takes_away`: it is the edit by which its
    kinds were priced, so that their cost is its replay. `per_token`: whether it changes how much one step
    does, so that only times per token compare. `acts_on`: the part of the windows that it changes at most,
    where that is no kind of the wall's cost.
    """

    id: str
    wall: WallId
    title: str
    change: Callable[[Run], Change]
    versions: str
    verify: str
    sources: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    advice: Callable[[Run], tuple[Precondition, ...]] = nothing_needed
    gains: tuple[Gain, ...] = ()
    side_effects: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    direct: tuple[str, ...] | None = None
    same_as: str = ""
    wins: tuple[str, ...] | None = None
    changes: Callable[[Run], tuple[str, ...]] = nothing_replayed
    any_program: bool = False
    pytorch: Form | None = None
    any_framework: bool = False
    arms: Callable[[Run], Mapping[str, Change]] = one_change
    of_run: Callable[[Fix, Run], Fix] = the_same
    with_room: bool = False
    takes_away: bool = False
    per_token: Callable[[Run], bool] = never
    acts_on: Callable[[Run], float | None] = unbounded

    def knobs(self, run: Run) -> Knobs:
        """Its change in every spelling."""
        return lines(self.change(run), run)

    def preconditions(self, run: Run) -> tuple[Precondition, ...]:
        """What it needs: the releases of its knobs, rules about what it switches on, and advice."""
        change = self.change(run)
        unseen = unseen_recipe(run, change.in_run(run))
        needs = (*unseen, *asked_by_rules(run, self.id, change), *self.advice(run))
        return tuple({one.text: one for one in needs}.values())
