"""What a fix is: a change of the configuration, what it needs, what it gave elsewhere, how to
verify it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from msgspec import Struct

from heuristics.fixes.asked_by_rules import asked_by_rules
from heuristics.fixes.change import Change, lines
from heuristics.fixes.precondition import Needs
from heuristics.result.judged import Knobs
from heuristics.run.run import Run
from traces.sections.tables import WallId
from traces.settings.knobs import MICRO_BATCH
from traces.texts import Texts
from traces.toml_tables import TableRow

Changing = Callable[[Run], Change]
Needing = Callable[[Run], Needs]
Saying = Callable[[Run], Texts]


def _nothing(run: Run) -> tuple[()]:
    return ()


Lever = Literal["", "lever", "known_off"]
Variable = Literal[
    "dispatcher",
    "CUDA graphs",
    "parallel layout",
    "batch shape",
    "precision",
    "recompute",
    "routing mode",
]


class Gain(Struct, frozen=True, array_like=True):
    """A published measurement of the change, with the shape it was measured on and its source."""

    text: str
    source: str


class Form(TableRow, kw_only=True):
    """A fix as plain PyTorch makes it; what it does not say is as the fix says it.

    `code`: lines of a training script; `beside`: lines that only some runs need. `how`: sentences,
    where no line can be typed; `inference`: those of a program that does not train, where they are
    others. `active`: needs beside the fix's own. `kinds`: of the wall's cost it acts on, where they
    are others than the fix's.
    """

    code: Texts = ()
    how: Texts = ()
    title: str = ""
    verify: str = ""
    sources: Texts = ()
    environment: Texts = ()
    versions: str = "every PyTorch release since 2.0"
    side_effects: Texts = ()
    kinds: Texts | None = None
    active: Needing = _nothing
    advice: Needing = _nothing
    changes: Saying = _nothing
    inference: Texts = ()
    beside: Saying = _nothing

    def change(self, run: Run) -> Change:
        how = self.inference if self.inference and run.active.training is False else self.how
        return Change(pytorch=(*self.code, *self.beside(run)), launch=self.environment, how=how)


class Fix(TableRow, kw_only=True):
    """One fix: a row of a table beside this file, or of a plug-in. `id` is the catalogue's (COM-2).

    In a table, `change` is knobs and values, `advice` a list of needs, and either, as every field
    that asks a run, may be the name of a function: `graphs.partial` of `graphs.py` beside this
    file.

    `doc`: what it changes, where it helps, and what forbids it, in paragraphs. `active`: needs that
    do not hold where the run does already what it would change, by trace, configuration or log;
    they are asked in every framework's words, and only there is a fix said to be set already.
    `advice`: what it needs to pay, and what no rule of a release asks; the rest of `preconditions`
    follows from its change. `kinds`: the kinds of the wall's cost that it acts on; empty means all.
    `direct`: those that, when they dominate, put it before the general order (None: its kinds).
    `wins`: those whose cost bounds its gain (None: its kinds). `changes`: the kinds of change, as
    `traces.replay.changes` names them, that it makes to a run. `excludes`: fixes that must not be
    in one plan with it; `same_as`: a fix of another wall that makes the same change. `versions`:
    from which release it is there, and where its names changed. `any_program`: it helps whatever
    runs, training or not. `pytorch`: the same for a run of plain PyTorch; `any_framework`: its
    environment serves every framework. A fix with neither is Megatron's alone. `arms`: the changes
    to measure against each other, by name, where no guide names a winner. `of_run`: the fix as it
    is for a run, where it turns a knob up for one and down for another. `with_room`: of memory's,
    one that helps where memory is not short: it uses the room, or makes no more of it.
    `takes_away`: it is the edit by which its kinds were priced, so that their cost is its replay.
    `per_token`: a larger batch, where it makes one, is more work in a step, so that only times per
    token compare. `acts_on`: the part of the windows that it changes at most, where that is no kind
    of the wall's cost. `aside`: it changes nothing of the run itself, so that another wall's fix
    that waits for it may follow in the same plan. `lever`: it helps a step that nothing removable
    holds back; `known_off`: where the run is known to do without it. `varies`: what it changes of
    that which experiments hold fixed. `waits_for`: findings of what is configured and does not run,
    before which it is not tried. `limits`: the numbers in it: limits, and rows of recipes.toml.
    """

    id: str
    wall: WallId
    title: str
    change: Changing
    verify: str
    sources: Texts
    versions: str = "every Megatron-Core release here"
    doc: str = ""
    kinds: Texts = ()
    active: Needing = _nothing
    advice: Needing = _nothing
    gains: tuple[Gain, ...] = ()
    side_effects: Texts = ()
    excludes: Texts = ()
    direct: Texts | None = None
    same_as: str = ""
    wins: Texts | None = None
    changes: Saying = _nothing
    any_program: bool = False
    pytorch: Form | None = None
    any_framework: bool = False
    arms: Callable[[Run], Mapping[str, Change]] = lambda run: {}
    of_run: Callable[["Fix", Run], "Fix"] = lambda fix, run: fix
    with_room: bool = False
    takes_away: bool = False
    per_token: bool = False
    acts_on: Callable[[Run], float | None] = lambda run: None
    aside: bool = False
    lever: Lever = ""
    varies: tuple[Variable, ...] = ()
    waits_for: Texts = ()
    limits: Texts = ()

    def knobs(self, run: Run) -> Knobs:
        return lines(self.change(run), run)

    def preconditions(self, run: Run) -> Needs:
        """What it needs: the releases of its knobs, rules about what it switches on, and advice."""
        active = (replace(need, is_active=True) for need in self.active(run))
        by_rules = asked_by_rules(run, self.id, self.change(run))
        return tuple({need.text: need for need in (*active, *by_rules, *self.advice(run))}.values())

    def counts_tokens(self, run: Run) -> bool:
        """Whether a step does more with it, so that only times per token compare."""
        change = self.change(run)
        return self.per_token and bool(change.pytorch or MICRO_BATCH in change.set)


Catalogue = Mapping[str, Fix]
"""By id."""
