"""Several ranks of two runs: how their groups moved, which rank changed most, who was late and who is."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.compared import Compared, ComparedRank, ComparedRun, LateState, Place
from reports.content.blocks import Column, Quantity, Row, Sentence, Table, Tone, words
from reports.content.comparison.headline import both
from reports.content.names import name_of, who
from traces.missing import OrMissing, known
from traces.spelling import counted, milliseconds, percent, signed

_LATE: Final = {
    LateState.APPEARED: "none in base; new: {new}.",
    LateState.GONE: "gone. In base: {base}.",
    LateState.SAME: "the same on both sides: {new}.",
    LateState.OTHER: "another one. Base: {base}; new: {new}.",
    LateState.NONE: "none on either side.",
    LateState.UNKNOWN: "unknown on one side at least. Base: {base}; new: {new}.",
}
_TONES: Final = {LateState.APPEARED: Tone.BAD, LateState.GONE: Tone.GOOD, LateState.OTHER: Tone.NOTICE}


def ranks(compared: Compared) -> Iterator[Sentence]:
    """Two lines where both sides hold several ranks."""
    run = compared.run
    if run is UNSET:
        return
    parts = [both(counted(run.base_ranks, "rank"), counted(run.new_ranks, "rank")), *_groups(run)]
    parts += [*_most(compared, run), *_waiting(run)]
    yield Sentence(words(f"{'; '.join(parts)}."), "Ranks", whole=True)
    late = run.late
    base = _named(known(late.base), late.base_cause is not None and name_of(late.base_cause))
    new = _named(known(late.new), late.new_cause is not None and name_of(late.new_cause))
    said = _LATE[late.state].format(base=base, new=new)
    yield Sentence(words(said), "Late rank", _TONES.get(late.state, Tone.PLAIN), whole=True)


def _groups(run: ComparedRun) -> Iterator[str]:
    """How the median step of each matched group moved."""
    moved = [one.step_delta_ns for one in run.groups]
    if moved:
        of = "" if len(moved) == 1 else " of groups"
        yield f"median step{of} {', '.join(map(_moved, moved))} ms"


def _most(compared: Compared, run: ComparedRun) -> Iterator[str]:
    """The rank that others wait for more, or less, than before; else the one whose step changed most."""
    if not run.ranks:
        yield "no rank of one run does the work of a rank of the other"
        return
    first = run.ranks[0]
    waited = known(first.caused_delta_ns)
    more = "" if waited is None else f", others together wait {_moved(waited)} ms for it"
    yield f"most changed: {_name(compared, first)}: step {_moved(first.step_delta_ns)} ms{more}"


def _waiting(run: ComparedRun) -> Iterator[str]:
    base, new = known(run.base_waiting_frac), known(run.new_waiting_frac)
    if base is not None and new is not None:
        yield f"waiting {both(percent(base), percent(new))} of communication time"


def _name(compared: Compared, one: ComparedRank) -> str:
    found = next((pair.new for pair in compared.pairs if pair.new.index == one.new_index), None)
    return f"rank {one.rank}" if found is None else who(found)


def _named(place: Place | None, cause: str | bool) -> str:
    if not cause:
        return "unknown"
    return str(cause) if place is None else f"{who(place)}, {cause}"


def _moved(delta_ns: OrMissing[int]) -> str:
    value = known(delta_ns)
    return "unknown" if value is None else signed(milliseconds(value))


def ranks_table(compared: Compared) -> Table:
    """Every matched rank; empty where a side is one rank alone."""
    run = compared.run
    heads = ("step", "waited", "others waited for it")
    columns = (Column("rank"), Column("matched by"), *(Column(head, number=True) for head in heads))
    shown = () if run is UNSET else run.ranks
    return Table("", columns, tuple(_row(compared, one) for one in shown))


def _row(compared: Compared, one: ComparedRank) -> Row:
    moved = (one.step_delta_ns, one.waited_delta_ns, one.caused_delta_ns)
    texts = (Quantity(_moved(delta_ns)) for delta_ns in moved)
    return Row((words(_name(compared, one)), words(one.by), *texts))
