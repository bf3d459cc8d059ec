"""What no type says of a result: rows add up to the steps, columns are of one length and point at
things.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from heuristics.result.compared import Compared
from heuristics.result.result import Result
from traces.errors import NotAResult
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import Timeline

_TIME: Final = range(2**63)
"""What a column of times holds as 64 bits."""


def check_result(result: Result) -> Result:
    """The result. Raises `NotAResult` with the place of what does not fit together."""
    for place, rank in enumerate(result.ranks):
        _check_ledger(rank, f"ranks[{place}].ledger")
        for timeline in rank.timelines:
            _check_timeline(timeline, f"ranks[{place}].timeline")
    return result


def check_compared(compared: Compared) -> Compared:
    _check_timeline(compared.base.timeline, "base.timeline")
    _check_timeline(compared.new.timeline, "new.timeline")
    return compared


def _check_ledger(rank: Rank, path: str) -> None:
    rows = known(rank.ledger)
    if rows is None:
        return
    count = len(rank.lengths_ns)
    for place, row in enumerate(rows):
        if len(row.per_step_ns) != count:
            _wrong(f"{path}[{place}].per_step_ns is to have {count} entries, one per used step")
    budget = [row.per_step_ns for row in rows if row.group == "budget"]
    if [*map(sum, zip(*budget, strict=True))] != list(rank.lengths_ns):
        _wrong(f"{path} does not add up to the steps")


def _check_timeline(timeline: Timeline, path: str) -> None:
    names = range(-1, len(timeline.names))
    for place, lane in enumerate(timeline.lanes):
        keys = range(len(timeline.keys))
        columns = {"at_ns": _TIME, "length_ns": _TIME, "key": keys, "name": names}
        values = (lane.at_ns, lane.length_ns, lane.key, lane.name)
        _check_columns(values, columns, f"{path}.lanes[{place}]")
        if lane.launch_ns and len(lane.launch_ns) != len(lane.at_ns):
            _wrong(f"{path}.lanes[{place}].launch_ns is to be as long as at_ns, or empty")
    for place, host in enumerate(timeline.host):
        columns = {"at_ns": _TIME, "length_ns": _TIME, "name": names}
        _check_columns((host.at_ns, host.length_ns, host.name), columns, f"{path}.host[{place}]")
    if reasons := known(timeline.reasons):
        columns = {"at_ns": _TIME, "length_ns": _TIME, "reason": range(len(reasons.reasons))}
        _check_columns(
            (reasons.at_ns, reasons.length_ns, reasons.reason), columns, f"{path}.reasons"
        )


def _check_columns(
    values: Sequence[Sequence[int]], allowed: Mapping[str, range], path: str
) -> None:
    if len({*map(len, values)}) != 1:
        _wrong(f"{path} is to have {', '.join(allowed)} as lists of one length")
    for (name, entries), column in zip(allowed.items(), values, strict=True):
        if not all(one in entries for one in column):
            _wrong(f"{path}.{name} has an entry that is no time, or points at nothing")


def _wrong(what: str) -> None:
    raise NotAResult(f"{what}. Make the result again: moe-diag analyze")
