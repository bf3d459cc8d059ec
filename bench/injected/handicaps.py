"""The handicaps: each put in a graph, some ns a step, in the steps chosen. `KINDS` is their table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from bench.injected.graph import end, start
from bench.injected.read import COMMUNICATION, COPY, Recording, Row, is_compute
from bench.injected.scene import FEWEST_RUN, Scene, Unfit

SORTS: Final = {
    "gemm": re.compile(r"gemm|nvjet|Cijk|cutlass", re.I),
    "convolution": re.compile(r"conv|winograd|wgrad|dgrad|scudnn|implicit", re.I),
    "norm": re.compile(r"batch_?norm|bn_|layer_?norm|MIOpenBatch", re.I),
    "elementwise": re.compile(r"elementwise", re.I),
}
RETURN_NS: Final = 8_000
BEFORE_NS: Final = 2_000
"""An operator that was put in starts so long before its launch."""
PAUSES_FRAC: Final = 0.1
"""Of its launches a step has its small pauses before this part."""
MOST_LONGER: Final = 4.0
NEIGHBOURS: Final = 200
FEWEST_WORK_FRAC: Final = 0.08
"""A sort of kernels counts with so much of the work of a step."""


def python(scene: Scene, amount_ns: float) -> str:
    """The host pauses before a tenth of the launches, in no call."""
    for _, calls in scene.each():
        some = scene.spread(calls, int(len(calls) * PAUSES_FRAC))
        for call, part in zip(some, scene.shares(amount_ns, [1] * len(some)), strict=True):
            scene.graph.delay(start(call.index), part)
    return "python"


def pause(scene: Scene, amount_ns: float) -> str:
    """The host pauses once a step."""
    place = scene.random.uniform(0.2, 0.8)
    for _, calls in scene.each():
        scene.graph.delay(start(calls[int(len(calls) * place)].index), scene.rounded(amount_ns))
    return "pause"


def data(scene: Scene, amount_ns: float) -> str:
    """The host waits before the first launch of each step: in the loader's range, where there is one."""
    loads = [row for row in scene.recording.host.get(scene.recording.main, ()) if "DataLoader" in row.name]
    for step, _ in scene.each():
        first = scene.steps.calls[step][0]
        since = scene.steps.calls[step - 1][-1].end if step else 0
        found = [row for row in loads if since <= row.start and row.end <= first.start]
        point = end(found[-1].index) if found else start(first.index)
        scene.graph.delay(point, scene.rounded(amount_ns))
    return "data"


def launch(scene: Scene, amount_ns: float) -> str:
    """Each call that launches takes longer."""
    for _, calls in scene.each():
        for call, part in zip(calls, scene.shares(amount_ns, [1] * len(calls)), strict=True):
            scene.graph.delay(end(call.index), part)
    return "launch"


def sync(scene: Scene, amount_ns: float) -> str:
    """After every n-th launch the host waits for all work launched so far."""
    typical = _typical_step(scene)
    last: dict[tuple[str, str], int] = {}
    named = scene.random.choice(("DeviceSynchronize", "StreamSynchronize"))
    chosen = set(scene.chosen)
    for step in range(len(scene.steps.calls)):
        picked = set()
        if step in chosen:
            calls = scene.launches(step)
            picked = {call.index for call in scene.spread(calls, round(40 * amount_ns / typical))}
        for call in scene.steps.calls[step]:
            for row in scene.recording.work_of[call.index]:
                last[row.place] = row.index
            if call.index in picked:
                made = scene.call(call, named, end(call.index), 0, RETURN_NS)
                for row_index in last.values():
                    scene.graph.wait(end(made), end(row_index), RETURN_NS)
    return "sync"


def _typical_step(scene: Scene) -> float:
    rows = sorted(row.start for call in scene.steps.calls for row in scene.recording.work_of[call[0].index])
    return max(1.0, (rows[-1] - rows[0]) / max(1, len(rows) - 1))


def allocator(scene: Scene, amount_ns: float) -> str:
    """Memory is freed and allocated anew between launches, in calls that take time."""
    for _, calls in scene.each():
        some = scene.spread(calls, 8)
        for call, part in zip(some, scene.shares(amount_ns, [1] * len(some)), strict=True):
            free = scene.rounded(part * 0.6)
            made = scene.call(call, "Free", end(call.index), 0, free)
            scene.call(call, "Malloc", end(made), 0, part - free)
    return "allocator"


def _longer(scene: Scene, amount_ns: float, kind: Callable[[Row], bool]) -> None:
    """All rows of a kind take longer by one factor, which adds so much work a step."""
    work = sum(row.end - row.start for step in scene.chosen for row in scene.work(step, kind))
    if not work:
        raise Unfit("no such rows")
    factor = min(MOST_LONGER, amount_ns * len(scene.chosen) / work)
    for step in scene.chosen:
        rows = scene.work(step, kind)
        lengths = [row.end - row.start for row in rows]
        for row, part in zip(rows, scene.shares(factor * sum(lengths), lengths), strict=True):
            scene.graph.delay(end(row.index), part)


def clocks(scene: Scene, amount_ns: float) -> str:
    """All kernels that compute take longer by one factor."""
    _longer(scene, amount_ns, is_compute)
    return "clocks"


def _sort(scene: Scene) -> tuple[str, Callable[[Row], bool]]:
    """One sort of kernels that takes enough of a step."""
    step = scene.chosen[0]
    whole = sum(row.end - row.start for row in scene.work(step, is_compute)) or 1
    lengths = {name: sum(row.end - row.start for row in scene.work(step, _of(name))) for name in SORTS}
    large = [name for name, length in lengths.items() if length >= FEWEST_WORK_FRAC * whole]
    if not large:
        raise Unfit("no sort of kernels takes enough")
    name = scene.random.choice(large)
    return name, _of(name)


def _of(sort: str) -> Callable[[Row], bool]:
    return lambda row: is_compute(row) and bool(SORTS[sort].search(row.name))


def of_class(scene: Scene, amount_ns: float) -> str:
    """All kernels of one sort take longer by one factor."""
    name, kind = _sort(scene)
    _longer(scene, amount_ns, kind)
    return f"class:{name}"


def split(scene: Scene, amount_ns: float) -> str:
    """Kernels of one sort run in two launches, each of half the work and more beside it."""
    name, kind = _sort(scene)
    instead = {}
    for step in scene.chosen:
        rows = [row for row in scene.work(step, kind) if row.end - row.start >= 2 * scene.unit]
        lengths = [row.end - row.start for row in rows]
        more = scene.shares(min(amount_ns, sum(lengths)), lengths)
        for row, added in zip(rows, more, strict=True):
            call = scene.recording.call_of[row.index]
            if scene.graph.at[end(call.index)] is None or len(scene.recording.work_of[call.index]) > 1:
                continue
            half = scene.rounded((row.end - row.start + added) / 2)
            scene.graph.delay(end(row.index), half - (row.end - row.start))
            _, work = scene.launch(call, row, end(call.index), end(row.index), half, scene.rounded(BEFORE_NS))
            instead[end(row.index)] = end(work)
    scene.graph.take_over(instead)
    return f"split:{name}"


def recompute(scene: Scene, amount_ns: float) -> str:
    """A run of forward's kernels is launched again by backward's thread, in the middle of its work."""
    recording, place = scene.recording, scene.random.uniform(0.2, 0.6)
    if recording.backward in (None, recording.main):
        raise Unfit("no thread of its own for backward")
    for _, calls in scene.each():
        backward = [call for call in calls if call.place == recording.backward]
        if len(backward) < FEWEST_RUN:
            raise Unfit("no backward")
        forward = [
            (call, recording.work_of[call.index][0])
            for call in calls
            if call.place == recording.main and call.start < backward[0].start
        ]
        run = _run([one for one in forward if is_compute(one[1])], amount_ns)
        _again(scene, run, backward[int(len(backward) * place)])
    return "recompute"


def _again(scene: Scene, run: list[tuple[Row, Row]], at: Row) -> None:
    """Launch these once more, each in its operator, after a call of backward's."""
    recording, graph = scene.recording, scene.graph
    tid = recording.events[at.index]["tid"]
    after, behind = end(at.index), end(recording.work_of[at.index][-1].index)
    operators = _operators(recording, [call for call, _ in run])
    for call, row in run:
        made, work = scene.launch(call, row, after, behind, row.end - row.start, 2 * BEFORE_NS)
        graph.added[made - len(recording.events)]["tid"] = tid
        if call.index in operators:
            event = scene.event(operators[call.index], scene.number(), tid=tid)
            event["args"].pop("correlation")
            graph.riders.append((event, start(made), BEFORE_NS, end(made)))
        after, behind = end(made), end(work)


def _run(forward: list[tuple[Row, Row]], amount_ns: float) -> list[tuple[Row, Row]]:
    """Neighbours among forward's kernels that take so long together."""
    first = len(forward) // 4
    run: list[tuple[Row, Row]] = []
    work = 0
    while first + len(run) < len(forward) and (len(run) < FEWEST_RUN or work < amount_ns):
        run.append(forward[first + len(run)])
        work += run[-1][1].end - run[-1][1].start
    if len(run) < FEWEST_RUN:
        raise Unfit("no forward")
    return run


def _operators(recording: Recording, calls: list[Row]) -> dict[int, Row]:
    """The innermost operator around each of these calls."""
    found: dict[int, Row] = {}
    rows = [
        row
        for row in recording.host[recording.main]
        if str(recording.events[row.index].get("cat")).lower() in ("cpu_op", "operator")
        and row.start <= calls[-1].end
        and row.end >= calls[0].start
    ]
    for call in calls:
        around = [row for row in rows if row.start <= call.start and call.end <= row.end]
        if around:
            found[call.index] = min(around, key=lambda row: row.end - row.start)
    return found


def copies_pageable(scene: Scene, amount_ns: float) -> str:
    """Copies of pinned memory are of pageable memory, take longer, and the host waits for them."""
    _longer(scene, amount_ns, lambda row: bool(COPY.match(row.name)) and "Pinned -> Device" in row.name)
    for step in scene.chosen:
        for row in scene.work(step, lambda row: "Pinned -> Device" in row.name):
            scene.graph.renamed[row.index] = row.name.replace("Pinned", "Pageable")
            scene.graph.wait(end(scene.recording.call_of[row.index].index), end(row.index), RETURN_NS)
    return "copies_pageable"


def _is_communication(row: Row) -> bool:
    return bool(COMMUNICATION.search(row.name)) and not COPY.match(row.name)


def comm_longer(scene: Scene, amount_ns: float) -> str:
    """All collectives take longer by one factor."""
    _longer(scene, amount_ns, _is_communication)
    return "comm_longer"


def comm_added(scene: Scene, amount_ns: float) -> str:
    """A few collectives of a step are followed by one more each: who waited for the first waits for both."""
    instead = {}
    for step in scene.chosen:
        rows = scene.work(step, _is_communication)
        some = scene.spread(rows, 4) if rows else []
        for row, part in zip(some, scene.shares(amount_ns, [1] * len(some)), strict=True):
            call = scene.recording.call_of[row.index]
            if scene.graph.at[end(call.index)] is not None:
                _, work = scene.launch(call, row, end(call.index), end(row.index), part)
                instead[end(row.index)] = end(work)
    if not instead:
        raise Unfit("no collectives")
    scene.graph.take_over(instead)
    return "comm_added"


def _compute_elsewhere(rows: Iterable[Row], beside: Row) -> Row | None:
    return next((row for row in rows if row.place != beside.place and is_compute(row)), None)


def overlap_lost(scene: Scene, amount_ns: float) -> str:
    """Collectives wait for the compute launched before them, and compute launched after waits for them."""
    lag, done = scene.rounded(scene.graph.gap_ns), 0
    share, chosen = min(1.0, 4 * amount_ns / _typical_step(scene)), set(scene.chosen)
    steps = [scene.work(step, lambda _: True) for step in range(len(scene.steps.calls))]
    rows = [row for step in steps for row in step]
    first = 0
    for number, step in enumerate(steps):
        beside = [first + at for at, row in enumerate(step) if _is_communication(row)]
        for at in beside[: max(1, round(len(beside) * share))] if number in chosen else ():
            before = _compute_elsewhere(reversed(rows[max(0, at - NEIGHBOURS) : at]), rows[at])
            after = _compute_elsewhere(rows[at : at + NEIGHBOURS], rows[at])
            if before and after:
                scene.graph.wait(start(rows[at].index), end(before.index), lag)
                scene.graph.wait(start(after.index), end(rows[at].index), lag)
                done += 1
        first += len(step)
    if not done:
        raise Unfit("no collective beside compute")
    return "overlap_lost"


class Kind(NamedTuple):
    """A handicap, and the wall that it raises."""

    put_in: Callable[[Scene, float], str]
    wall: str


KINDS: Final = {
    "python": Kind(python, "host_overhead"),
    "launch": Kind(launch, "host_overhead"),
    "sync": Kind(sync, "host_overhead"),
    "pause": Kind(pause, "host_overhead"),
    "data": Kind(data, "host_overhead"),
    "allocator": Kind(allocator, "memory"),
    "clocks": Kind(clocks, "compute"),
    "class": Kind(of_class, "compute"),
    "split": Kind(split, "compute"),
    "recompute": Kind(recompute, "memory"),
    "copies_pageable": Kind(copies_pageable, "memory"),
    "comm_longer": Kind(comm_longer, "communication"),
    "comm_added": Kind(comm_added, "communication"),
    "overlap_lost": Kind(overlap_lost, "communication"),
}
