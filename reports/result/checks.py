"""What no type says of a result: rows add up to the steps, columns are of one length and point at
things.
"""

from collections.abc import Mapping
from typing import Final

from heuristics.result.compared import Compared
from heuristics.result.result import Result
from reports.rows import each, those
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
    budget = each(those(rows, group="budget"), "per_step_ns")
    if [*map(sum, zip(*budget, strict=True))] != list(rank.lengths_ns):
        _wrong(f"{path} does not add up to the steps")


def _check_timeline(timeline: Timeline, path: str) -> None:
    names = range(-1, len(timeline.names))
    times = {"at_ns": _TIME, "length_ns": _TIME}
    for place, lane in enumerate(timeline.lanes):
        columns = {**times, "key": range(len(timeline.keys)), "name": names}
        _check_columns(lane, columns, f"{path}.lanes[{place}]")
        if lane.launch_ns and len(lane.launch_ns) != len(lane.at_ns):
            _wrong(f"{path}.lanes[{place}].launch_ns is to be as long as at_ns, or empty")
    for place, host in enumerate(timeline.host):
        _check_columns(host, {**times, "name": names}, f"{path}.host[{place}]")
    if reasons := timeline.reasons:
        columns = {**times, "reason": range(len(reasons.reasons))}
        _check_columns(reasons, columns, f"{path}.reasons")


def _check_columns(lane: object, allowed: Mapping[str, range], path: str) -> None:
    if len({len(getattr(lane, name)) for name in allowed}) != 1:
        _wrong(f"{path} is to have {', '.join(allowed)} as lists of one length")
    for name, entries in allowed.items():
        if not all(entry in entries for entry in getattr(lane, name)):
            _wrong(f"{path}.{name} has an entry that is no time, or points at nothing")


def _wrong(what: str) -> None:
    raise NotAResult(f"{what}. Make the result again: moe-diag analyze")
