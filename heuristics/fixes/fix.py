"""What a fix is: a change of the configuration, what it needs, what it gave elsewhere, how to verify it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from heuristics.run.run import Run, WallId

State = Literal["met", "unmet", "unknown"]


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something a fix needs.

    `cure`: where unmet, what would meet it (a fix id or a knob); where unknown, what to give to be told.
    """

    text: str
    state: State
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Knobs:
    """One change in its spellings.

    Flags of Megatron-LM, overrides of Megatron-Bridge, flags of Bridge's performance harness
    (scripts/performance), and environment or launcher; code of PyTorch where the run is not Megatron's.
    """

    megatron_lm: tuple[str, ...] = ()
    megatron_bridge: tuple[str, ...] = ()
    bridge_harness: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    pytorch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gain:
    """A published measurement of the change, with the shape it was measured on and its source."""

    text: str
    source: str


def nothing_replayed(run: Run) -> tuple[str, ...]:
    """No kind of change: what the fix does to a run cannot be said as an edit of its replay."""
    return ()


def nothing_needed(run: Run) -> tuple[Precondition, ...]:
    """No precondition."""
    return ()


def one_change(run: Run) -> Mapping[str, Knobs]:
    """No arms: the fix is one change."""
    return {}


@dataclass(frozen=True, slots=True)
class Form:
    """A fix as plain PyTorch makes it.

    `code`: lines of a training script, with a word on where they stand; `kinds`: of the wall's cost it acts
    on, where they are others than the fix's.
    """

    title: str
    code: tuple[str, ...]
    verify: str
    sources: tuple[str, ...]
    environment: tuple[str, ...] = ()
    versions: str = "every PyTorch release since 2.0"
    side_effects: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    preconditions: Callable[[Run], tuple[Precondition, ...]] = nothing_needed
    changes: Callable[[Run], tuple[str, ...]] = nothing_replayed


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix of the catalogue. `id` is the catalogue's (COM-2).

    `kinds`: the kinds of the wall's cost that it acts on; empty means all. `direct`: those that, when they
    dominate, put it before the general order (None: its kinds). `wins`: those whose cost bounds its gain
    (None: its kinds). `changes`: the kinds of change, as `traces.replay.changes` names them, that it makes to
    a run. `excludes`: fixes that must not be in one plan with it; `same_as`: a fix of another wall that makes
    the same change. `versions`: from which release it is there, and where its names changed. `any_program`:
    it helps whatever runs, training or not. `pytorch`: the same for a run of plain PyTorch; `any_framework`:
    its environment serves every framework. A fix with neither is Megatron's alone.
    `arms`: the changes to measure against each other, by name, where no guide names a winner.
    """

    id: str
    wall: WallId
    title: str
    kinds: tuple[str, ...]
    knobs: Callable[[Run], Knobs]
    preconditions: Callable[[Run], tuple[Precondition, ...]]
    versions: str
    gains: tuple[Gain, ...]
    side_effects: tuple[str, ...]
    excludes: tuple[str, ...]
    verify: str
    sources: tuple[str, ...]
    direct: tuple[str, ...] | None = None
    same_as: str = ""
    wins: tuple[str, ...] | None = None
    changes: Callable[[Run], tuple[str, ...]] = nothing_replayed
    any_program: bool = False
    pytorch: Form | None = None
    any_framework: bool = False
    arms: Callable[[Run], Mapping[str, Knobs]] = one_change
