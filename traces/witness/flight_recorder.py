"""Dumps of PyTorch's Flight Recorder, pickled or as JSON -> `Dump`.

Keys: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (versions 2.0 to
2.10). A dump does not hold its own rank: PyTorch names files by it (TORCH_FR_DUMP_TEMP_FILE, with
the rank behind it). What is retired was finished, whatever its state says: gloo leaves that at
`scheduled`.
"""

from collections.abc import Mapping
from typing import Any, Final

from traces.names.foreign import cut_name
from traces.names.process_groups import known_group, operation_named
from traces.patterns import compiled, numbers_in, whole_number
from traces.sections.hang import WitnessSource
from traces.witness.dump import Dump, Entered, GroupKey, GroupSaid

MOST_RANKS: Final = 1 << 20
_RANKS: Final = compiled(r"\[\s*\d{1,7}(?:\s*,\s*\d{1,7})*\s*\]")
_NAMED: Final = compiled(r"(\d{1,7})(?:\.(?:json|pkl|pickle|pt|bin|log|txt))?$")
_NS_PER_MS: Final = 1_000_000


class NotADump(ValueError):
    """It is no dump of the Flight Recorder."""


def is_dump(document: object) -> bool:
    """Whether a document has a dump's entries."""
    return isinstance(document, dict) and isinstance(document.get("entries"), list | tuple)


def dump_of(document: Mapping[str, Any], name: str) -> Dump:
    """The dump in a document. Raises `NotADump` where neither it nor the file's name has its
    rank.
    """
    rank = _count(document.get("rank"))
    if rank is None:
        match = _NAMED.search(name)
        if match is None:
            raise NotADump("its name does not end with its rank, and the dump does not hold it")
        rank = int(match[1])
    ranks = {str(key): _ranks(said) for key, said in _mapping(document.get("pg_config")).items()}
    status = {str(key): state for key, state in _mapping(document.get("pg_status")).items()}
    groups: dict[GroupKey, GroupSaid] = {}
    # of a coalesced group the parts share a number, and its first stands for it
    entered: dict[tuple[GroupKey, int], Entered] = {}
    # a pickle may name one again and again
    entries = {id(entry): entry for entry in document["entries"]}
    for entry in entries.values():
        if isinstance(entry, dict) and entry.get("is_p2p") is not True:
            key, about = _group(entry, ranks, status)
            groups.setdefault(key, about)
            if (collective := _entered(entry, key)) is not None:
                entered.setdefault((key, collective.sequence), collective)
    return Dump(rank, WitnessSource.FLIGHT_RECORDER, groups, tuple(entered.values()))


def _mapping(value: object) -> Mapping[Any, Any]:
    if isinstance(value, dict):
        return value
    return {}


def _count(value: object) -> int | None:
    """A whole number from 0, as itself or as text."""
    if isinstance(value, str):
        value = whole_number(value)
    if type(value) is int and 0 <= value < 1 << 63:
        return value
    return None


def _text(value: object) -> str:
    """A text, or a whole number as one; empty for what is neither: parts of it may stand in it many
    times.
    """
    if isinstance(value, str):
        return cut_name(value)
    if _count(value) is not None:
        return str(value)
    return ""


def _ranks(group: object) -> tuple[int, ...]:
    text = _mapping(group).get("ranks")
    if isinstance(text, str) and _RANKS.fullmatch(text):
        return tuple(sorted({*numbers_in(text)}))
    return ()


def _group(
    entry: Mapping[str, Any], ranks: Mapping[str, tuple[int, ...]], status: Mapping[str, Any]
) -> tuple[GroupKey, GroupSaid]:
    pair = entry.get("process_group")
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        pair = "", ""
    name, description = map(_text, pair)
    members = ranks.get(name, ())
    last = _count(_mapping(status.get(_text(entry.get("pg_id")))).get("last_enqueued_collective"))
    said = GroupSaid(known_group(description) or "", len(members) or None, last)
    return (name, members), said


def _entered(entry: Mapping[str, Any], key: GroupKey) -> Entered | None:
    sequence = _count(entry.get("collective_seq_id"))
    if sequence is None:
        return None
    started_ns = _count(entry.get("time_discovered_started_ns"))
    ended_ns = _count(entry.get("time_discovered_completed_ns"))
    took = entry.get("duration_ms")
    duration_ns = None
    if isinstance(took, int | float) and 0 < took < 1e12:
        duration_ns = round(took * _NS_PER_MS)
    elif started_ns and ended_ns and ended_ns >= started_ns:
        duration_ns = ended_ns - started_ns
    return Entered(
        key,
        sequence,
        operation_named(_text(entry.get("profiling_name"))),
        _elements(entry),
        entry.get("state") == "completed" or entry.get("retired") is True,
        _count(entry.get("time_created_ns")) or 0,
        duration_ns,
    )


def _elements(entry: Mapping[str, Any]) -> str:
    """How many elements of which type the rank gives, by shapes such as [[2, 3]]."""
    shapes, types = entry.get("input_sizes"), entry.get("input_dtypes")
    if not isinstance(shapes, list | tuple) or not shapes or len(shapes) > MOST_RANKS:
        return ""
    total = 0
    for shape in shapes:
        if not isinstance(shape, list | tuple) or len(shape) > 64:
            return ""
        whole = 1
        for dimension in shape:
            if (size := _count(dimension)) is None:
                return ""
            whole = min(whole * size, 1 << 63)
        total += whole
    listed = types if isinstance(types, list | tuple) else ()
    named = {name for name in listed if isinstance(name, str)}
    kind = named.pop() if len(named) == 1 else ""
    if not compiled(r"[A-Za-z][A-Za-z0-9_]{1,24}").fullmatch(kind):
        kind = "elements"
    return f"{total:,} {kind}"
