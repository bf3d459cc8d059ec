"""What NCCL Inspector writes, one JSON object a line -> `Dump`.

Keys: NVIDIA/nccl, plugins/profiler/inspector/inspector_json.cc (before 2.30
ext-profiler/inspector), formats v4.0 to v4.3. A rank is given by its place in each communicator; in
the largest that is its number. Only finished collectives are written, so a hang is not seen here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from traces.names.foreign import cut_name
from traces.names.process_groups import known_group, operation_named
from traces.sections.hang import WitnessSource
from traces.witness.dump import Dump, Entered, GroupKey, GroupSaid

_NS_PER_US: Final = 1000
_HEADER: Final = ("header", "metadata")


class NotInspector(ValueError):
    """It is no output of NCCL Inspector."""


def dumps_of(lines: Iterable[str]) -> list[Dump]:
    """One dump a process. Raises `NotInspector` where no line has a communicator's header."""
    ranks: dict[str, dict[str, tuple[int, int]]] = {}
    groups: dict[str, dict[GroupKey, GroupSaid]] = {}
    entered: dict[str, list[Entered]] = {}
    for process, header, record in _records(lines):
        communicator = cut_name(str(header.get("id")))
        rank = _count(header.get("rank"))
        size = _count(header.get("n_ranks"))
        if rank is None or size is None:
            continue
        key = (communicator, ())
        ranks.setdefault(process, {})[communicator] = (size, rank)
        name = known_group(cut_name(str(header.get("comm_name", "")))) or ""
        groups.setdefault(process, {})[key] = GroupSaid(name, size)
        if (one := _entered(record.get("coll_perf"), key)) is not None:
            entered.setdefault(process, []).append(one)
    if not ranks:
        raise NotInspector("no line of it names a communicator")
    return [
        Dump(
            max(places.values())[1],
            WitnessSource.INSPECTOR,
            groups[process],
            tuple(entered.get(process, ())),
        )
        for process, places in ranks.items()
    ]


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
        if not (text := line.strip()):
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            continue  # the last line of a run that was ended
        if not isinstance(record, dict):
            continue
        context = {name: record.get(name) for name in _HEADER}
        if isinstance(context["header"], dict):
            before = context
        elif not before:
            continue
        header: Any = before["header"]
        said = before["metadata"] if isinstance(before["metadata"], dict) else {}
        yield f"{said.get('hostname')}\0{said.get('pid')}", header, record


def _entered(said: object, key: GroupKey) -> Entered | None:
    if not isinstance(said, dict):
        return None
    sequence, took, size = (
        _count(said.get(name)) for name in ("coll_sn", "coll_exec_time_us", "coll_msg_size_bytes")
    )
    if sequence is None:
        return None
    return Entered(
        key,
        sequence,
        operation_named(str(said.get("coll", ""))),
        "" if size is None else f"{size:,} bytes",
        True,
        0,
        took * _NS_PER_US if took else None,
    )
