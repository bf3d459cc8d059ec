"""What NCCL Inspector writes, one JSON object a line -> `Dump`.

Keys: NVIDIA/nccl, plugins/profiler/inspector/inspector_json.cc (before 2.30
ext-profiler/inspector), formats v4.0 to v4.3. A rank is given by its place in each communicator; in
the largest that is its number. Only finished collectives are written, so a hang is not seen here.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from traces.names.foreign import cut_name
from traces.names.process_groups import known_group, operation_named
from traces.sections.hang import WitnessSource
from traces.witness.dump import Dump, Entered, GroupKey, GroupSaid

_NS_PER_US: Final = 1000


class NotInspector(ValueError):
    """It is no output of NCCL Inspector."""


def dumps_of(lines: Iterable[str]) -> list[Dump]:
    """One dump a process. Raises `NotInspector` where no line has a communicator's header."""
    processes = defaultdict[str, _Process](_Process)
    for process, header, record in _records(lines):
        communicator = cut_name(str(header.get("id")))
        rank = _count(header.get("rank"))
        size = _count(header.get("n_ranks"))
        if rank is None or size is None:
            continue
        key = (communicator, ())
        mine = processes[process]
        mine.places[communicator] = (size, rank)
        name = known_group(cut_name(str(header.get("comm_name", "")))) or ""
        mine.groups[key] = GroupSaid(name, size)
        if (collective := _entered(record.get("coll_perf"), key)) is not None:
            mine.entered.append(collective)
    if not processes:
        raise NotInspector("no line of it names a communicator")
    return [mine.dump() for mine in processes.values()]


@dataclass(slots=True)
class _Process:
    """What one process wrote. `places`: of each communicator its size and the process's place."""

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    groups: dict[GroupKey, GroupSaid] = field(default_factory=dict)
    entered: list[Entered] = field(default_factory=list)

    def dump(self) -> Dump:
        _, rank = max(self.places.values())
        return Dump(rank, WitnessSource.INSPECTOR, self.groups, tuple(self.entered))


def _count(value: object) -> int | None:
    if type(value) is int and 0 <= value < 1 << 50:
        return value
    return None


def _records(lines: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Process, header and record of each line; from v4.3 on a dump's first line has the header of
    all.
    """
    before: Mapping[str, Any] = {}
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a blank line, or the last one of a run that was ended
        if not isinstance(record, dict):
            continue
        if isinstance(record.get("header"), dict):
            before = record
        elif not before:
            continue
        metadata = before.get("metadata")
        if not isinstance(metadata, dict):
            metadata = {}
        yield f"{metadata.get('hostname')}\0{metadata.get('pid')}", before["header"], record


def _entered(timed: object, key: GroupKey) -> Entered | None:
    if not isinstance(timed, dict):
        return None
    sequence, took = _count(timed.get("coll_sn")), _count(timed.get("coll_exec_time_us"))
    size = _count(timed.get("coll_msg_size_bytes"))
    if sequence is None:
        return None
    return Entered(
        key,
        sequence,
        operation_named(str(timed.get("coll", ""))),
        "" if size is None else f"{size:,} bytes",
        True,
        0,
        took * _NS_PER_US if took else None,
    )
