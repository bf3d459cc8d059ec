"""What is made of a run: `verdict`, `walls`, `fixes`, `levers`, `refused`, `choices`."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from traces.missing import OrMissing
from traces.sections.section import Frac, Ns, Section
from traces.sections.tables import WallId
from traces.texts import Key, Keys, Said, Sentences, Typed

Level = Literal["high", "medium", "low"]
NeedState = Literal["met", "unmet", "unknown"]
AnswerKind = Literal["ok", "rejected", "needs", "no_such_knob", "not_checked"]
Outcome = Literal["finding", "clear", "unmeasurable"]
Bucket = Literal["compute", "exposed_comm", "exposed_copy", "idle"]
MemoryRoom = Literal["enough", "tight", "unknown"]
ReasonId = Literal[
    "startup",
    "unseen_ranks",
    "not_replayed",
    "unexplained_waits",
    "unknown_kernels",
    "replay_off",
    "profiler",
    "no_steps",
    "few_steps",
    "blocks",
    "first_step",
    "one_rank",
    "other_ranks",
    "unmeasured_walls",
    "symptoms",
    "earlier_result",
]
"""Why a verdict is not surer, the most decisive first."""
Refusal = Literal["needs", "absent", "excluded", "forbidden", "rejected", "little", "nothing"]
"""Why a fix is not in the plan: it needs something, another excludes it, rules or the framework
reject it, what it acts on is little, or what it could win costs nothing."""


class Reason(Section):
    """Why a verdict is not surer."""

    id: ReasonId
    text: Said


class Verdict(Section):
    """The one wall, or an honest none. `does_not_fit`: memory is too small, so its wall comes
    first.
    """

    wall: OrMissing[WallId]
    kind: OrMissing[Key]
    bound: OrMissing[WallId]
    tied_with: tuple[WallId, ...]
    runner_up: OrMissing[WallId]
    confidence: OrMissing[Level]
    confidence_because: Sentences
    because: Sentences
    next_wall: OrMissing[WallId]
    next_wall_frac: OrMissing[Frac]
    next_because: Said
    startup_ns: Ns
    largest_bucket: OrMissing[Bucket]
    largest_bucket_frac: OrMissing[Frac]
    confidence_reasons: tuple[Reason, ...] = ()
    does_not_fit: bool = False


class Evidence(Section):
    """One measured value; `limit` is None for context, a place is None where no single one shows
    it.
    """

    measure: Key
    value: float
    unit: Said
    limit: float | None
    because: Said
    start_ns: int | None
    end_ns: int | None
    step: int | None
    rank: int | None


class Wall(Section):
    """One wall: what it costs at most. `room`: of the memory wall, whether the run has memory
    left.
    """

    id: WallId
    outcome: Outcome
    cost_ns: OrMissing[Ns]
    cost_frac: OrMissing[Frac]
    cost_by_kind_ns: OrMissing[Mapping[Key, Ns]]
    at_most_frac: OrMissing[Frac]
    evidence: tuple[Evidence, ...]
    missing: Sentences
    cure: Said
    at_least_frac: Frac | UnsetType = UNSET
    room: MemoryRoom | UnsetType = UNSET


Walls = Sequence[Wall]


class Knobs(Section):
    """One change in its spellings.

    Flags of Megatron-LM, overrides of Megatron-Bridge, flags of Bridge's performance harness
    (scripts/performance; for a run of theirs with overrides for what no flag sets), and environment
    or launcher; code of PyTorch where the run is not Megatron's.
    """

    megatron_lm: tuple[Typed, ...]
    megatron_bridge: tuple[Typed, ...]
    bridge_harness: tuple[Typed, ...]
    environment: tuple[Typed, ...]
    pytorch: tuple[Typed, ...]


class Arm(Section):
    """One of the changes to measure against each other, where no guide names a winner."""

    name: Key
    knobs: Knobs


class Precondition(Section):
    """What a fix needs, and what would meet or tell it."""

    text: Said
    state: NeedState
    cure: Said


class Checked(Section):
    """What one tier says of the configuration with a change in it."""

    tier: Literal["rules", "config", "layer"]
    answer: AnswerKind
    text: Said


class Room(Section):
    """Whether a change fits. `delta_bytes`: what it adds (below zero: frees).

    `free_bytes`: room there is now, its margin kept. `fits` is None where one of them is unknown;
    `because` says it in one sentence.
    """

    delta_bytes: int | None
    free_bytes: int | None
    fits: bool | None
    because: Said


class KnownIssue(Section):
    """A published hang, crash or regression that this change can meet here.

    `releases`: by package. `only_if`: what decides and is not known of the run; empty: all of it
    fits.
    """

    id: Key
    what: Said
    releases: Sentences
    gpus: Keys
    only_if: Sentences
    workaround: Said
    source: Said


class Fix(Section):
    """One change to try; the lower end of `gain_frac` is null where no lower end can be defended.

    `first_because`: what puts it before the usual order of its wall, empty where nothing does.
    `gain_replayed`: whether a replay of the change gives its range; else the upper end is what it
    acts on. `per_token`: whether only times per token compare, since a step does more with it.
    `how`: sentences on what no line of its knobs can say. `acts_on`: the kinds of its wall's cost
    that it acts on, as parts of the windows; empty where it acts on none of them. `wide_because`:
    what makes its range wide, and what narrows it; empty where the range decides.
    """

    id: Key
    wall: WallId
    title: Said
    knobs: Knobs
    versions: Said
    preconditions: tuple[Precondition, ...]
    checked: tuple[Checked, ...]
    after: Keys
    room: OrMissing[Room]
    gain_frac: OrMissing[tuple[OrMissing[float], float]]
    gain_source: OrMissing[Said]
    shares_with: Keys
    side_effects: Sentences
    verify: Said
    sources: Sentences
    known_issues: tuple[KnownIssue, ...] = ()
    arms: tuple[Arm, ...] = ()
    first_because: Said = ""
    gain_replayed: bool = True
    per_token: bool = False
    how: Sentences = ()
    acts_on: Mapping[Key, Frac] = {}
    wide_because: Said = ""


class Combined(Section):
    """Fixes applied together in one replay: what they win at least and at most, never a sum."""

    ids: Keys
    gain_frac: tuple[float, float]


class Refused(Section):
    """One change that is not in the plan, and why."""

    id: Key
    wall: WallId
    title: Said
    because: Said
    unlocked_by: Said
    source: Said
    kind: Refusal | None = None


class Choice(Section):
    """What the guides choose; `other`: what their other edition says, empty where it says the
    same.
    """

    about: Said
    answer: Said
    rule: Said
    other: Said
    settings: Sentences
    asks: Sentences
    refused: Sentences
    reason: Said = ""
    source: Said = ""
    other_rule: Said = ""
    other_reason: Said = ""
    candidates: Sentences = ()
    notes: Sentences = ()
    before: Sentences = ()
    then: Sentences = ()
    never: Sentences = ()
