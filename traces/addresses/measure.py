"""Every nanosecond that waits for the host under an address, and kernels by what they were launched
in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.device import ready_ns
from traces.account.host import Handover
from traces.account.pieces import CAUSES, REASON, AbsentPieces, Pieces, cut, tile
from traces.addresses.recorded import LEVELS, NO_FRAME, Level, calls_of, levels
from traces.arrays import (
    IntArray,
    count_from_0,
    distinct,
    ints,
    last_at,
    order_of,
    row_by_row,
    summed,
    zeros,
)
from traces.frozen import frozen
from traces.groups import first_of, group_of, sums_of
from traces.intervals import Spans, covered_ns, ns_in
from traces.limits import Limit
from traces.missing import Missing, OrMissing, gap
from traces.names.frames import FrameKind
from traces.sections.addresses import (
    Address,
    Addresses,
    AddressesLeftOut,
    AddressKind,
    GpuAddress,
    GpuAddressesLeftOut,
    HostCall,
    HostStack,
)
from traces.timeline import RankTimeline

READ: Final = Limit(25, "addresses or stacks", "ours: what a person reads; the rest is added up")
STACKS: Final = Limit(250, "stacks", "ours: what a picture can show apart; some 50 kB of a result")
PREFERRED: Final = (
    FrameKind.FUNCTION,
    FrameKind.OPERATOR,
    FrameKind.MODULE,
    FrameKind.NATIVE,
    FrameKind.RANGE,
    FrameKind.OS_CALL,
)
"""Which kind is the address of an instant of the host: the first that there is."""
GPU_PREFERRED: Final = (FrameKind.MODULE, FrameKind.RANGE, FrameKind.OPERATOR, FrameKind.FUNCTION)
"""Which kind is the address of a launch: the part of the model says more than a line of code."""
_FIRST_BLOCKING, _AFTER_BLOCKING = len(CAUSES), REASON["launch_latency.arrival"]


@frozen
class _Pieces(Pieces):
    """Pieces of host time, with a name for each of `LEVELS`, or -1; `work` that is waited for, or
    -1; `blocks`: 1 where it waits; `call`: that of CUDA or HIP that the thread is in, or -1.
    """

    work: IntArray
    blocks: IntArray
    module: IntArray
    range: IntArray
    function: IntArray
    operator: IntArray
    native: IntArray
    os_call: IntArray
    call: IntArray

    @property
    def blocking_ns(self) -> IntArray:
        return self.length_ns * self.blocks


def measure_addresses(
    rank: RankTimeline, windows: Spans, absent: AbsentPieces | Missing
) -> Addresses | Missing:
    """Addresses of one rank; `Missing` where it is unknown why no compute ran."""
    if isinstance(absent, Missing):
        return gap(absent.reason, absent.cure)
    by_kind = levels(rank, windows)
    calls = calls_of(rank)
    host = _host_pieces(rank, windows, absent, by_kind, calls)
    return _section(
        rank, host, _gpu(rank, windows, by_kind), by_kind, _calls(rank, windows, calls, host)
    )


def _calls(rank: RankTimeline, windows: Spans, calls: Level, host: _Pieces) -> tuple[HostCall, ...]:
    """Calls of the launching threads by name, the longest in all first."""
    mine = (calls.name != NO_FRAME) & np.isin(calls.thread_gid, rank.activities.launching_threads)
    mine &= covered_ns(calls.start_ns, calls.start_ns + 1, windows) > 0
    name, count = calls.name[mine], len(calls.names)
    inside = host.take(host.call != NO_FRAME)
    blocking_ns = sums_of(inside.blocking_ns, inside.call, count)
    starved_ns = sums_of(inside.length_ns, inside.call, count) - blocking_ns
    took_ns = sums_of((calls.end_ns - calls.start_ns)[mine], name, count)
    counts = sums_of(np.ones_like(name), name, count)
    order = order_of(-took_ns)
    shown = order[(counts + starved_ns + blocking_ns)[order] > 0][: READ.whole]
    figures = (counts[shown], took_ns[shown], starved_ns[shown], blocking_ns[shown])
    return tuple(HostCall(calls.text(code), *ns) for code, *ns in row_by_row(shown, *figures))


def _host_pieces(
    rank: RankTimeline,
    windows: Spans,
    absent: AbsentPieces,
    by_kind: Mapping[FrameKind, Level],
    calls: Level,
) -> _Pieces:
    """All starved and blocking time in the windows.

    Before its kernel's launch returned, time has the address of the thread that decides; what is
    waited for after it, that of its own launch. A call behind the last launch ends the recording:
    it holds up nothing.
    """
    rows = rank.activities
    mine = np.flatnonzero(absent.reason < _AFTER_BLOCKING)
    none = np.full(len(mine), NO_FRAME)
    kernel, start_ns, end_ns = absent.kernel[mine], absent.start_ns[mine], absent.end_ns[mine]
    blocks = ints(absent.reason[mine] >= _FIRST_BLOCKING)
    nothing = [none] * (len(LEVELS) + 1)
    pieces = _Pieces(start_ns, end_ns, kernel, absent.work[mine], blocks, *nothing)
    pieces, inside = cut(pieces, tile(windows.start_ns, windows.end_ns, zeros(len(windows)), -1))
    pieces = pieces.take(inside >= 0)
    by_host = (pieces.blocks == 0) | (pieces.end_ns <= ready_ns(rows, pieces.kernel))
    host, device = pieces.take(by_host), pieces.take(~by_host)
    device = replace(device, **_at_launch(rank, device.work, by_kind))
    launched_by = rows.launch_thread[device.work]
    parts = _on_threads(rank, host, by_kind)
    parts += [(gid, device.take(launched_by == gid)) for gid in distinct(launched_by).tolist()]
    pieces = _Pieces.joined(*(_within_calls(part, gid, calls) for gid, part in parts))
    ended = pieces.start_ns > rows.launch_ns.max()
    return replace(pieces, call=np.where(ended, NO_FRAME, pieces.call))


def _within_calls(pieces: _Pieces, thread: int, calls: Level) -> _Pieces:
    if not len(pieces):
        return pieces
    parts, call = cut(pieces, calls.on_thread(thread))
    return replace(parts, call=call)


def _on_threads(
    rank: RankTimeline, host: _Pieces, by_kind: Mapping[FrameKind, Level]
) -> list[tuple[int, _Pieces]]:
    """The pieces of each launching thread, under its names."""
    own, other, until_ns = Handover(rank).before(host.kernel)
    thread = np.where(host.start_ns < until_ns, other, own)
    parts = []
    for gid in rank.activities.launching_threads.tolist():
        mine = host.take(thread == gid)
        for kind in LEVELS if len(mine) else ():
            mine, name = cut(mine, by_kind[kind].on_thread(gid))
            mine = replace(mine, **{kind: name})
        parts.append((gid, mine))
    return parts


def _at_launch(
    rank: RankTimeline, places: IntArray, by_kind: Mapping[FrameKind, Level]
) -> dict[FrameKind, IntArray]:
    """The innermost name of each kind where some work was launched; -1 where that was not
    recorded.
    """
    launched = rank.activities.take(places)
    at_ns, thread = launched.launch_ns, launched.launch_thread
    names = {kind: np.full(len(places), NO_FRAME) for kind in LEVELS}
    for gid in rank.activities.launching_threads.tolist():
        mine = thread == gid
        for kind in LEVELS:
            tiling = by_kind[kind].on_thread(gid)
            names[kind][mine] = tiling.label[last_at(tiling.start_ns, at_ns[mine])]
    return names


def _gpu(
    rank: RankTimeline, windows: Spans, by_kind: Mapping[FrameKind, Level]
) -> tuple[tuple[GpuAddress, ...], GpuAddressesLeftOut]:
    """Kernels by address, the most work first, and those that are left out."""
    rows = rank.activities
    work_ns = ns_in(rows, windows)
    mine = np.flatnonzero((work_ns > 0) & ~rows.is_copy)
    level, name = _chosen(_at_launch(rank, mine, by_kind), GPU_PREFERRED)
    group = group_of(level, name)
    first, groups = first_of(group), count_from_0(group)
    counts, sums = sums_of(np.ones_like(mine), group, groups), sums_of(work_ns[mine], group, groups)
    order, most, shown = order_of(-sums), READ.whole, list[GpuAddress]()
    for place, at in row_by_row(order[:most], first[order[:most]]):
        address = _address(by_kind, GPU_PREFERRED, level[at], name[at])
        shown.append(GpuAddress(*address, int(counts[place]), int(sums[place])))
    unshown = order[most:]
    left = GpuAddressesLeftOut(len(unshown), summed(counts[unshown]), summed(sums[unshown]))
    return tuple(shown), left


def _chosen(
    names: Mapping[FrameKind, IntArray], preferred: tuple[FrameKind, ...]
) -> tuple[IntArray, IntArray]:
    """Of each row the place in `preferred` of the first kind with a name, and that name; (-1, -1):
    none.
    """
    count = len(names[LEVELS[0]])
    level, name = np.full(count, -1), np.full(count, NO_FRAME)
    for place in reversed(range(len(preferred))):
        has = names[preferred[place]] >= 0
        level, name = np.where(has, place, level), np.where(has, names[preferred[place]], name)
    return level, name


def _address(
    by_kind: Mapping[FrameKind, Level], preferred: tuple[FrameKind, ...], level: int, name: int
) -> tuple[AddressKind, str]:
    if level < 0:
        return FrameKind.NONE.value, ""
    return preferred[level].value, by_kind[preferred[level]].text(name)


def _section(
    rank: RankTimeline,
    host: _Pieces,
    gpu: tuple[tuple[GpuAddress, ...], GpuAddressesLeftOut],
    by_kind: Mapping[FrameKind, Level],
    calls: tuple[HostCall, ...],
) -> Addresses:
    length_ns, names = host.length_ns, {kind: getattr(host, kind) for kind in LEVELS}
    (level, name), total_ns = _chosen(names, PREFERRED), summed(length_ns)
    shown, left, stacks = list[Address](), list[Address](), list[HostStack]()
    for at, *ns in _largest(group_of(level, name), host):
        row = Address(*_address(by_kind, PREFERRED, level[at], name[at]), *ns)
        is_shown = len(shown) < READ.value or row.kind == "none"
        (shown if is_shown else left).append(row)
    for at, starved_ns, blocking_ns in _largest(group_of(*names.values()), host):
        texts = {kind: by_kind[kind].text(names[kind][at]) for kind in LEVELS}
        stacks.append(HostStack(**texts, starved_ns=starved_ns, blocking_ns=blocking_ns))
    blocks_ns = summed(host.blocking_ns)
    return Addresses(
        host_starved_ns=total_ns - blocks_ns,
        host_blocking_ns=blocks_ns,
        addressed_frac=_share(length_ns[level >= 0], total_ns),
        by_function_frac=_by_function(rank, length_ns[names[FrameKind.FUNCTION] >= 0], total_ns),
        hosts=tuple(shown),
        hosts_left_out=_left_out(left),
        host_stacks=tuple(stacks[: STACKS.whole]),
        host_stacks_left_out=_left_out(stacks[STACKS.whole :]),
        gpu_addresses=gpu[0],
        gpu_addresses_left_out=gpu[1],
        calls=calls,
    )


def _largest(group: IntArray, host: _Pieces) -> Iterator[tuple[int, int, int]]:
    """Of each group a row of it, and its starved and blocking time; the largest groups first."""
    count, first = count_from_0(group), first_of(group)
    ns, blocking_ns = (sums_of(times, group, count) for times in (host.length_ns, host.blocking_ns))
    order = order_of(-ns)
    return row_by_row(first[order], (ns - blocking_ns)[order], blocking_ns[order])


def _left_out(rows: list[Address] | list[HostStack]) -> AddressesLeftOut:
    return AddressesLeftOut(
        len(rows), sum(row.starved_ns for row in rows), sum(row.blocking_ns for row in rows)
    )


def _share(part_ns: IntArray, total_ns: int) -> float | Missing:
    if not total_ns:
        return gap("the GPU never waits for the host", "none is needed")
    return summed(part_ns) / total_ns


def _by_function(rank: RankTimeline, part_ns: IntArray, total_ns: int) -> OrMissing[float]:
    if rank.columns.frames is None:
        reason = "no functions of the program were recorded, only operators, ranges and calls"
        return rank.lacks(reason, "functions")
    return _share(part_ns, total_ns)
