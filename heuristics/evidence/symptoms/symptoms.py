"""What a user gives of a run in place of a trace: figures by the document's names, or an earlier result.

Each rank of a symptoms file, or the whole run given flat, becomes the figures that a trace would give.
"""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from itertools import islice
from typing import Any, Final, get_args

import msgspec
from msgspec import structs

from heuristics.config.hardware import gpu_named
from heuristics.config.logic import first_known
from heuristics.config.observed import Observed
from heuristics.evidence.symptoms.document import (
    Detected,
    Document,
    Late,
    Latency,
    Rank,
    Recorded,
    in_parts,
    no_symptom,
    unread,
    window_ns,
)
from heuristics.figures.figures import RECOMPUTE_LABELS, Figures, Parts, compute_again_ns
from heuristics.result.judged import Bucket, Verdict, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.price import unmeasurable
from heuristics.words import say
from traces.account.pieces import CAUSES
from traces.errors import InputError
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.names.frameworks import FRAMEWORKS
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.nearest import nearest
from traces.patterns import compiled
from traces.sections.cause import Cause
from traces.sections.rank import Memory
from traces.sections.section import copied
from traces.sections.tables import WallId
from traces.texts import Texts
from traces.training_log.log import Stage

WINDOW_NS: Final = 1_000_000_000
"""Length of every window, so that a part of it has a length in ns too, and ranks count alike."""
SLACK: Final = 0.005
"""How far parts may exceed their whole: figures are given rounded."""
FIGURES: Final[Mapping[WallId, Texts]] = {
    "memory": (
        *("memory.recompute_frac", "memory.offload_exposed_frac", "memory.allocator_frac"),
        *("memory.peak_bytes", "memory.capacity_bytes"),
    ),
    "communication": ("exposed_comm_by_kind_frac", "absent_frac.blocking"),
    "host_overhead": ("absent_frac.launch_starved",),
    "compute": ("sm.fill_frac",),
}
"""What has to be given for a wall to be judged by figures alone."""


def to_give(wall: WallId) -> str:
    return say("evidence.to-give", figures=", ".join(FIGURES[wall]))


CALLS_OF_A_RETRY: Final = Limit(2, "allocator calls a step", "memory is freed and allocated again")
_NOT_GIVEN: Final = gap(say("evidence.not-given"), to_give("memory"))
_FIELDS: Final[dict[str, Any]] = dict.fromkeys(Memory.__struct_fields__) | {"allocator_scope": ""}
_UNKNOWN: Final = Memory(**_FIELDS)
_FULL: Final = frozenset(("core_attn", "layernorm", "moe"))
"""Labels of a MoE layer's parts: where all of them run twice, whole layers do."""


UNREAD: Final = 20
"""Sentences of unknown keys that are kept: enough to see what a file speaks of."""
_GAP: Final = Missing("", say("evidence.not-named"), say("evidence.analyze-again"))


@frozen
class Symptoms:
    """The figures of a run. None is not given, never zero.

    `only_sums`: sums of kernel times are given, which say nothing of a window. `walls` and `verdict`: of an
    earlier result, taken as they stand. `out_of_memory`: the stage in which memory ran out. `unread`:
    sentences of keys that mean nothing to us.
    """

    ranks: tuple[Figures, ...] = ()
    capture: Recorded = field(default_factory=Recorded)
    late: Late | None = None
    out_of_memory: Stage | None = None
    only_sums: bool = False
    walls: tuple[Wall, ...] = ()
    verdict: Verdict | None = None
    unread: Texts = ()


def figures_given(told: Rank) -> Figures:
    """What an object tells of a rank. Raises InputError for parts that nobody knows or that are too much."""
    absent, memory = told.absent_frac, _memory(told)
    parts = {name: _ns(getattr(told.budget_frac, name)) for name in get_args(Bucket)}
    budget = {name: ns for name, ns in parts.items() if ns is not None}
    exposed = _times(told.exposed_comm_by_kind_frac, COMM_KINDS, "exposed_comm_by_kind_frac")
    hidden = _times(told.hidden_comm_by_kind_frac, COMM_KINDS, "hidden_comm_by_kind_frac")
    classes = _times(told.compute_by_class_frac, compute_classes(), "compute_by_class_frac")
    starved = _split(absent.launch_starved, CAUSES, "launch", "absent_frac.launch_starved")
    blocking = _split(absent.blocking, None, "other_comm", "absent_frac.blocking")
    latency = absent.launch_latency
    if memory.allocator_ns is None and starved is not None:
        memory = structs.replace(memory, allocator_ns=starved.get("allocator", 0))
    a2a_exposed_ns = first_known(_ns(told.a2a.exposed_frac), _of_experts(exposed))
    a2a_hidden_ns = first_known(_ns(told.a2a.hidden_frac), _of_experts(hidden))
    found = Figures(
        window_ns=WINDOW_NS,
        judged_ns=WINDOW_NS,
        memory=memory,
        rank=told.rank,
        budget_ns=budget,
        comm_kinds=frozenset(
            kind for one in (exposed, hidden, blocking) for kind, ns in (one or {}).items() if ns
        ),
        exposed_by_kind_ns=exposed,
        hidden_comm_ns=first_known(
            _ns(told.hidden_comm_frac), None if hidden is None else sum(hidden.values())
        ),
        by_class_ns=classes,
        starved_ns=starved,
        split=not isinstance(absent.launch_starved, float | int),
        blocking_ns=blocking,
        arrival_ns=_ns(latency.arrival if isinstance(latency, Latency) else latency),
        opaque_ns=_ns(absent.graph_opaque),
        stalled_ns=_ns(absent.dependency_stalled),
        masked_ns=_ns(told.masked_frac),
        recomputed_ns=compute_again_ns(memory),
        a2a_exposed_ns=a2a_exposed_ns,
        a2a_hidden_ns=a2a_hidden_ns,
        a2a_payload_ns=first_known(
            _ns(told.a2a.payload_frac), (a2a_exposed_ns or 0) + (a2a_hidden_ns or 0) or None
        ),
        a2a_waiting_ns=_ns(told.a2a.waiting_like_frac),
        work_ns=budget.get("compute", WINDOW_NS),
        under_filled_ns=_ns(told.sm.under_filled_frac),
        fill_frac=told.sm.fill_frac,
        observed=_observed(told),
    )
    _check_sums(found)
    return found


def _ns(part: float | None) -> int | None:
    if part is None:
        return None
    return round(part * WINDOW_NS)


def _times(told: Mapping[str, float] | None, known: Collection[str], place: str) -> dict[str, int] | None:
    if told is None:
        return None
    return {key: ns for key, ns in _parts(told, known, place).items() if ns}


def _parts(told: Mapping[str, float], known: Collection[str], place: str) -> dict[str, int]:
    """Lengths by key. Raises InputError for one that is none of `known`: it would change the whole."""
    if unknown := next((key for key in told if key not in known), None):
        raise InputError(no_symptom(unknown, known, f"{place}."))
    return {key: round(part * WINDOW_NS) for key, part in told.items()}


def _split(
    told: float | Mapping[str, float] | None, known: Collection[str] | None, plain: str, place: str
) -> dict[str, int] | None:
    """Parts by key (any key where none is `known`); one figure for all stands under the plainest of them."""
    if isinstance(told, Mapping):
        return _parts(told, told if known is None else known, place)
    if told is None:
        return None
    return {plain: round(told * WINDOW_NS)}


def _of_experts(kinds: Parts | None) -> int | None:
    if kinds is None:
        return None
    return sum(ns for kind, ns in kinds.items() if kind.startswith("ep_"))


def _memory(told: Rank) -> Memory:
    memory, again = told.memory, told.memory.recompute_modules
    calls, retried = memory.allocator_calls_per_step, memory.allocator_retry_frac
    if retried is None and calls is not None:
        retried = min(1.0, calls / CALLS_OF_A_RETRY.value)
    return structs.replace(
        _UNKNOWN,
        recompute_ns=first_known(_ns(memory.recompute_frac), _NOT_GIVEN),
        recompute_modules=_parts(again, again, "") if isinstance(again, Mapping) else None,
        offload_exposed_ns=0 if memory.offload_copies == 0 else _ns(memory.offload_exposed_frac),
        offload_copies=memory.offload_copies,
        host_resident_exposed_ns=_ns(memory.host_resident_exposed_frac),
        allocator_ns=_ns(memory.allocator_frac),
        allocator_retry_frac=retried,
        peak_bytes=None if memory.peak_bytes is None else int(memory.peak_bytes),
        capacity_bytes=None if memory.capacity_bytes is None else int(memory.capacity_bytes),
    )


def _observed(told: Rank) -> Observed:
    seen, kernels = told.detected, told.kernels
    modules, full = _recomputed(seen, told.memory.recompute_modules)
    return copied(
        Observed,
        seen,
        kernels,
        framework=next((one for one in FRAMEWORKS if one == seen.framework), None),
        training=seen.training_step,
        gpu=None if told.gpu is None else gpu_named(told.gpu),
        dispatcher=seen.dispatcher or "unknown",
        graph_frac=seen.graph_share_frac,
        recompute_modules=modules,
        recompute_full=full,
        allocator_calls_per_step=told.memory.allocator_calls_per_step,
        short_kernel_frac=first_known(kernels.short_kernel_frac, seen.short_kernel_frac),
    )


def _recomputed(seen: Detected, modules: object) -> tuple[Texts | None, bool | None]:
    labels = modules if isinstance(modules, tuple) else None
    match seen.recompute:
        case None | "selective":
            return labels, _is_full(labels)
        case "none":
            return labels or (), False
        case "full":
            return labels, True
        case tuple() as named:
            return named, _is_full(named)
        case passes:
            again = {RECOMPUTE_LABELS.get(key) for key, one in passes.items() if one.recomputed_count}
            return tuple(sorted(label for label in again if label)), None


def _is_full(modules: Texts | None) -> bool | None:
    if modules is None:
        return None
    return {*modules} >= _FULL


def _check_sums(found: Figures) -> None:
    budget, compute_ns = found.budget_ns, found.budget_ns.get("compute", WINDOW_NS)
    absent = [*(found.starved_ns or {}).values(), *(found.blocking_ns or {}).values()]
    absent += [one for one in (found.arrival_ns, found.opaque_ns, found.stalled_ns) if one]
    exposed, classes = (found.exposed_by_kind_ns or {}).values(), (found.by_class_ns or {}).values()
    whole_absent = WINDOW_NS - budget.get("compute", 0)
    checks = (
        ("budget", budget.values(), WINDOW_NS, "the window"),
        ("exposed_comm_by_kind", exposed, budget.get("exposed_comm", WINDOW_NS), "exposed_comm"),
        ("compute_by_class", classes, compute_ns, "compute"),
        ("absent", absent, whole_absent, "the window without compute"),
    )
    for name, parts, whole_ns, what in checks:
        frac, whole = sum(parts) / WINDOW_NS, whole_ns / WINDOW_NS
        if frac > whole + SLACK:
            raise InputError(f"{name} adds up to {frac:.3f}, more than {what} ({whole:.3f})")


NOTHING: Final = figures_given(Rank())
"""A rank of which nothing is given."""


def read_symptoms(text: str, name: str) -> Symptoms:
    """Symptoms of a JSON text; `name` is the file's, for messages.

    Raises InputError: no JSON, an unknown part, a wrong type or value, parts that add up to more than the
    whole, or nothing given that we know.
    """
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InputError(f"{name}: no JSON ({error}); symptoms are one JSON object") from None
    if not isinstance(values, dict):
        raise InputError(f'{name}: symptoms are one JSON object, such as {{"budget_frac": {{...}}}}')
    try:
        return symptoms_of(values)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def symptoms_of(values: Mapping[str, object]) -> Symptoms:
    """Symptoms of a document, an earlier result's too. Raises InputError as `read_symptoms` does."""
    document = _decoded(values)
    version = document.schema_version
    if version is not None and not version.startswith("1."):
        raise InputError("schema_version is no version of ours; results of 1.0 can be read")
    ranks = [document] if document.ranks is None else document.ranks
    if version is None and document.ranks and figures_given(document) != NOTHING:
        raise InputError("figures stand beside ranks; give them for each of them")
    figures = tuple(map(figures_given, ranks))
    found = Symptoms(
        ranks=figures,
        capture=_capture(document),
        late=_late(document, figures),
        out_of_memory=document.log.out_of_memory,
        only_sums=any(one.kernels.sum_by_class_frac for one in ranks),
        walls=_walls(document),
        verdict=document.verdict if document.walls else None,
    )
    notes = () if version is not None else tuple(islice(unread(values), UNREAD))
    if found == Symptoms(ranks=(NOTHING,)):
        is_near = any(nearest(key, Document.__struct_fields__) for key in islice(values, UNREAD))
        hint = notes[0] if notes and is_near else say("evidence.give-some")  # another word may be a secret
        raise InputError(f"nothing is given that we know; {hint}")
    return replace(found, unread=notes)


def _decoded(values: Mapping[str, object]) -> Document:
    made = in_parts(Rank, values, window_ns(values))
    listed = values.get("ranks")
    ranks = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    if isinstance(listed, list) and len(ranks) == len(listed):
        made["ranks"] = [in_parts(Rank, one, window_ns(one)) for one in ranks]
    if isinstance(run := values.get("run"), dict) and isinstance(late := run.get("late"), dict):
        windows = [ns for one in (values, *ranks) if (ns := window_ns(one))]
        made["run"] = {**run, "late": in_parts(Late, late, max(windows, default=None), "run.late.")}
    try:
        return msgspec.convert(made, Document)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        what = compiled(r"^Invalid enum value .*").sub("none of the known values", what)  # may be a secret
        place = where.strip("`").removeprefix("$.") or "the document"
        raise InputError(f"{place}: {what}; parts of the window are 0 to 1: 26 % is 0.26") from None


def _capture(document: Document) -> Recorded:
    """Of `capture`, of the earlier result's traces, and of `run`, where the contract has the counts."""
    own, run = document.capture, document.run
    perturbed = [one.perturbation_frac for one in (own, *(trace.capture for trace in document.traces))]
    seen = first_known(own.ranks_seen, run.ranks_seen)
    world = first_known(own.world_size, run.world_size)
    if seen is not None and world is not None and seen > world:
        raise InputError("ranks_seen is more than world_size")
    return Recorded(
        perturbation_frac=max((one for one in perturbed if one is not None), default=None),
        missing_events=own.missing_events,
        ranks_seen=seen,
        world_size=world,
    )


def _late(document: Document, ranks: tuple[Figures, ...]) -> Late | None:
    late = document.run.late
    if late is None:
        return None
    place, number = late.index, late.rank
    if number is None and place is not None and place < len(ranks):
        number = ranks[place].rank
    return structs.replace(late, cause=late.cause or Cause.NONE, rank=number)


def _walls(document: Document) -> tuple[Wall, ...]:
    """All four walls in the order of the workflow, those not named unmeasurable; none where none is named."""
    found = {wall.id: _open(wall) for wall in document.walls}
    if found:
        return tuple(found.get(wall) or unmeasurable(wall, _GAP) for wall in WALL_IDS)
    return ()


def _open(wall: Wall) -> Wall:
    """The wall with its gaps as it words them; room in memory is the new run's."""
    gap = Missing("", "; ".join(wall.missing), wall.cure)
    no_kinds: Missing | dict[str, int] = gap if wall.outcome == "unmeasurable" else {}
    return structs.replace(
        wall,
        cost_ns=first_known(wall.cost_ns, gap),
        cost_frac=first_known(wall.cost_frac, gap),
        cost_by_kind_ns=first_known(wall.cost_by_kind_ns, no_kinds),
        at_most_frac=first_known(wall.at_most_frac, gap),
        at_least_frac=msgspec.UNSET,
        room=msgspec.UNSET,
    )
