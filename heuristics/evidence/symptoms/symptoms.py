"""What a user gives of a run in place of a trace: figures by the document's names, or an earlier
result.

Each rank of a symptoms file, or the whole run given flat, becomes the figures that a trace would
give.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from itertools import islice
from typing import Final

import msgspec
from msgspec import structs

from heuristics.config.logic import first_known
from heuristics.evidence.symptoms.document import (
    Document,
    Late,
    Rank,
    Recorded,
    in_parts,
    unread,
    window_ns,
)
from heuristics.evidence.symptoms.given_rank import NOTHING, figures_given
from heuristics.figures.figures import Figures
from heuristics.result.judged import Verdict, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.price import unmeasurable
from heuristics.words import say
from traces.errors import InputError
from traces.frozen import frozen
from traces.missing import Missing
from traces.nearest import nearest
from traces.patterns import compiled
from traces.sections.cause import Cause
from traces.texts import Texts
from traces.training_log.log import Stage

UNREAD: Final = 20
"""Sentences of unknown keys that are kept: enough to see what a file speaks of."""
_GAP: Final = Missing("", say("evidence.not-named"), say("evidence.analyze-again"))


@frozen
class Symptoms:
    """The figures of a run. None is not given, never zero.

    `only_sums`: sums of kernel times are given, which say nothing of a window. `walls` and
    `verdict`: of an earlier result, taken as they stand. `out_of_memory`: the stage in which memory
    ran out. `unread`: sentences of keys that mean nothing to us.
    """

    ranks: tuple[Figures, ...] = ()
    capture: Recorded = field(default_factory=Recorded)
    late: Late | None = None
    out_of_memory: Stage | None = None
    only_sums: bool = False
    walls: tuple[Wall, ...] = ()
    verdict: Verdict | None = None
    unread: Texts = ()


def read_symptoms(text: str, name: str) -> Symptoms:
    """Symptoms of a JSON text; `name` is the file's, for messages.

    Raises InputError: no JSON, an unknown part, a wrong type or value, parts that add up to more
    than the whole, or nothing given that we know.
    """
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InputError(f"{name}: no JSON ({error}); symptoms are one JSON object") from None
    if not isinstance(values, dict):
        raise InputError(
            f'{name}: symptoms are one JSON object, such as {{"budget_frac": {{...}}}}'
        )
    try:
        return symptoms_of(values)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def symptoms_of(values: Mapping[str, object]) -> Symptoms:
    """Symptoms of a document, an earlier result's too. Raises InputError as `read_symptoms`
    does.
    """
    document = _decoded(values)
    version = document.schema_version
    if version is not None and not version.startswith("1."):
        raise InputError("schema_version is no version of ours; results of 1.0 can be read")
    ranks = [document] if document.ranks is None else document.ranks
    if version is None and document.ranks and figures_given(document) != NOTHING:
        raise InputError("figures stand beside ranks; give them for each of them")
    figures = tuple(map(figures_given, ranks))
    symptoms = Symptoms(
        ranks=figures,
        capture=_capture(document),
        late=_late(document, figures),
        out_of_memory=document.log.out_of_memory,
        only_sums=any(rank.kernels.sum_by_class_frac for rank in ranks),
        walls=_walls(document),
        verdict=document.verdict if document.walls else None,
    )
    notes = () if version is not None else tuple(islice(unread(values), UNREAD))
    if symptoms == Symptoms(ranks=(NOTHING,)):
        is_near = any(nearest(key, Document.__struct_fields__) for key in islice(values, UNREAD))
        # another word may be a secret
        hint = notes[0] if notes and is_near else say("evidence.give-some")
        raise InputError(f"nothing is given that we know; {hint}")
    return replace(symptoms, unread=notes)


def _decoded(values: Mapping[str, object]) -> Document:
    made = in_parts(Rank, values, window_ns(values))
    listed = values.get("ranks")
    ranks = [rank for rank in listed if isinstance(rank, dict)] if isinstance(listed, list) else []
    if isinstance(listed, list) and len(ranks) == len(listed):
        made["ranks"] = [in_parts(Rank, rank, window_ns(rank)) for rank in ranks]
    if isinstance(run := values.get("run"), dict) and isinstance(late := run.get("late"), dict):
        windows = [ns for part in (values, *ranks) if (ns := window_ns(part))]
        made["run"] = {**run, "late": in_parts(Late, late, max(windows, default=None), "run.late.")}
    try:
        return msgspec.convert(made, Document)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        # may be a secret
        what = compiled(r"^Invalid enum value .*").sub("none of the known values", what)
        place = where.strip("`").removeprefix("$.") or "the document"
        raise InputError(f"{place}: {what}; parts of the window are 0 to 1: 26 % is 0.26") from None


def _capture(document: Document) -> Recorded:
    """Of `capture`, of the earlier result's traces, and of `run`, where the contract has the
    counts.
    """
    own, run = document.capture, document.run
    perturbed = [own.perturbation_frac]
    for trace in document.traces:
        perturbed.append(trace.capture.perturbation_frac)
    seen = first_known(own.ranks_seen, run.ranks_seen)
    world = first_known(own.world_size, run.world_size)
    if seen is not None and world is not None and seen > world:
        raise InputError("ranks_seen is more than world_size")
    return structs.replace(
        own,
        perturbation_frac=max((frac for frac in perturbed if frac is not None), default=None),
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
    """All four walls in the order of the workflow, those not named unmeasurable; none where none is
    named.
    """
    by_id = {wall.id: _open(wall) for wall in document.walls}
    if by_id:
        return tuple(by_id.get(wall) or unmeasurable(wall, _GAP) for wall in WALL_IDS)
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
