"""How much longer is each step with a handicap in it? How much of that stays when it is taken out again?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import floor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

from bench.injected.graph import Edit, Graph, build, end, start
from bench.injected.handicaps import KINDS
from bench.injected.read import Event, Recording, Steps, is_compute, load, read, steps_of
from bench.injected.scene import Scene, Unfit
from bench.injected.write import Times, save, written

LEAST_FRAC, MOST_FRAC = 0.03, 0.25
SEEN_FRAC: Final = 0.01
"""A handicap that lengthens the steps that have it by less, is hidden by the GPU: no pair."""
TRIES: Final = 6
MOST_STEPS: Final = 2.0
"""The host is held up by no more of a step than this, to be seen behind a GPU that is late."""
NEAR_FRAC: Final = 0.15
MOST_LEFT_FRAC: Final = 0.01
OFFSET_US: Final = 3_456_789
JITTER_FRAC: Final = 0.01
HARMLESS: Final = ("offset", "ids", "order", "jitter")


@dataclass
class Truth:
    """What is known of a pair; times in ns, steps as `steps_by` says."""

    file: str
    base: str
    kind: str
    cause: str
    wall: str
    scope: str
    steps_by: str
    edited: list[int]
    base_steps: list[int]
    new_steps: list[int]
    left_frac: float | None = None
    change: list[int] = field(init=False)
    delta_ns: int = field(init=False)
    delta_frac: float = field(init=False)

    def __post_init__(self) -> None:
        pairs = zip(self.new_steps, self.base_steps, strict=True)
        self.change = [new - old for new, old in pairs]
        self.delta_ns = round(sum(self.change) / len(self.change))
        self.delta_frac = sum(self.change) / sum(self.base_steps)

    def told(self) -> dict[str, Any]:
        return asdict(self)


def lengths(steps: Steps, times: Times, added: Iterable[int] = ()) -> list[int]:
    """From the first GPU row of a step to that of the next; the last to the end of its and added work."""
    borders = [min(times[start(row)] or 0 for row in rows) for rows in steps.rows]
    borders.append(max(times[end(row)] or 0 for row in [*steps.rows[-1], *added]))
    return [after - before for before, after in pairwise(borders)]


@dataclass
class Base:
    """A recording to put handicaps in."""

    path: Path
    recording: Recording
    steps: Steps
    graph: Graph

    @property
    def lengths(self) -> list[int]:
        return lengths(self.steps, self.graph.at)

    @property
    def name(self) -> str:
        return self.path.name.split(".")[0]


def is_identity(base: Base) -> bool:
    """Does an edit of nothing give the file back, event by event?"""
    return written(base.graph.copy(), base.graph.times()) == base.recording.document


def _chosen(scope: str, count: int, random: Random) -> list[int]:
    if scope == "every":
        return list(range(count))
    return sorted(random.sample(range(count), 1 if scope == "one" else max(2, count // 3)))


def put_in(base: Base, kind: str, seed: int) -> tuple[Graph, Times, Truth]:
    """A handicap of a size drawn on the seed: the graph with it, its times, the truth."""
    random = Random(seed)
    size, scope = (
        random.uniform(LEAST_FRAC, MOST_FRAC),
        random.choices(("every", "some", "one"), (7, 2, 1))[0],
    )
    chosen, before = _chosen(scope, len(base.steps.rows), random), base.lengths
    wanted = amount = size * median(before)
    low, high = 0.0, MOST_STEPS * median(before)
    tried: list[tuple[float, int, Graph, Times, Truth]] = []
    for _ in range(TRIES):
        graph, times, truth = _tried(base, kind, seed, scope, chosen, amount)
        longer = sum(truth.change) / len(chosen)
        tried.append((abs(longer - wanted), len(tried), graph, times, truth))
        if abs(longer - wanted) <= NEAR_FRAC * wanted:
            break
        low, high = (amount, high) if longer < wanted else (low, amount)
        guess = amount * wanted / longer if longer > 0 else high
        amount = guess if low < guess < high else (low + high) / 2
    _, _, graph, times, truth = min(tried, key=lambda one: one[:2])
    if sum(truth.change) < SEEN_FRAC * median(before) * len(chosen):
        raise Unfit("the GPU hides it")
    return graph, times, truth


def _tried(
    base: Base, kind: str, seed: int, scope: str, chosen: list[int], amount_ns: float
) -> tuple[Graph, Times, Truth]:
    """What comes of a handicap of so many ns a step, some of which the GPU may hide."""
    scene = Scene(base.graph.copy(), base.steps, chosen, Random(seed))
    cause = KINDS[kind].put_in(scene, amount_ns)
    times = scene.graph.times()
    new = lengths(base.steps, times, scene.graph.work_added())
    told = "", base.path.name, kind, cause, KINDS[kind].wall, scope, base.steps.by
    return scene.graph, times, Truth(*told, chosen, base.lengths, new)


def left_frac(path: Path, base: Base, graph: Graph, truth: Truth) -> float:
    """Read the written file, take the edit out, and say which part of the change stays."""
    again = build(load(path))
    if lengths(base.steps, again.at, graph.work_added()) != truth.new_steps:
        raise ValueError(f"{path.name}: read anew, its times are others")
    riders = len(base.recording.events) + len(graph.added)
    rows = [*graph.edit.rows, *range(riders, riders + len(graph.riders))]
    again.take_out(Edit(graph.edit.delays, rows, graph.edit.waits))
    left = sum(lengths(base.steps, again.times())) - sum(base.lengths)
    return round(left / max(1, abs(sum(truth.change))), 5)


def write_pair(base: Base, kind: str, seed: int, out: Path) -> Truth:
    """A pair with a handicap, as a file beside others; its base is read in place."""
    graph, times, truth = put_in(base, kind, seed)
    truth.file = f"{base.name}__{kind}.json.gz"
    save(written(graph, times), out / truth.file)
    truth.left_frac = left_frac(out / truth.file, base, graph, truth)
    if abs(truth.left_frac) > MOST_LEFT_FRAC:
        (out / truth.file).unlink()
        raise Unfit(f"taken out again, {truth.left_frac:.1%} of it stays: the graph does not carry it")
    return truth


def write_harmless(base: Base, kind: str, seed: int, out: Path) -> Truth:
    """A pair that differs in nothing that counts."""
    random, before = Random(seed), base.lengths
    truth = Truth("", str(base.path.name), kind, "none", "", "none", base.steps.by, [], before, before)
    truth.file = f"{base.name}__{kind}.json.gz"
    document = base.recording.document
    if kind == "jitter":
        truth.base = f"{base.name}__jitter_base.json.gz"
        times = [_jittered(base, random) for _ in range(2)]
        save(written(base.graph.copy(), times[0]), out / truth.base)
        document = written(base.graph.copy(), times[1])
        old, new = (lengths(base.steps, one) for one in times)
        truth = replace(truth, base_steps=old, new_steps=new)
    elif kind == "order":
        document = {
            **document,
            "traceEvents": random.sample(base.recording.events, len(base.recording.events)),
        }
    else:
        change = _later if kind == "offset" else _OtherIds(base.recording)
        document = {**document, "traceEvents": [change(event) for event in base.recording.events]}
    save(document, out / truth.file)
    return truth


def _jittered(base: Base, random: Random) -> Times:
    """All times, where each kernel that computes takes up to a hundredth more or less."""
    graph, unit = base.graph.copy(), 1000 if base.recording.whole_us else 1
    for row in filter(is_compute, base.recording.gpu):
        share = random.uniform(-JITTER_FRAC, JITTER_FRAC) * (row.end - row.start) / unit
        graph.delay(end(row.index), floor(share + random.random()) * unit)
    return graph.times()


def _later(event: Event) -> Event:
    if "ts" not in event:
        return event
    return event | {
        "ts": event["ts"] + OFFSET_US if isinstance(event["ts"], int) else round(event["ts"] + OFFSET_US, 3)
    }


def _plus(value: Any, by: int) -> Any:
    """A number, also where it stands in a word, as another."""
    if isinstance(value, int):
        return value + by
    words = str(value).split(" ")
    return " ".join([*words[:-1], str(int(words[-1]) + by)]) if words[-1].isdigit() else value


class _OtherIds:
    """Events with other processes, threads, streams and correlations."""

    def __init__(self, recording: Recording) -> None:
        self.hosts = {call.place[0] for call in recording.calls}
        self.numbers = {call.correlation for call in recording.calls}

    def __call__(self, event: Event) -> Event:
        new = dict(event)
        if str(event.get("pid")) in self.hosts:
            new |= {"pid": _plus(event["pid"], 1007), "tid": _plus(event.get("tid"), 1007)}
        elif isinstance(event.get("pid"), int):
            new["tid"] = _plus(event.get("tid"), 3)
        args = dict(event.get("args") or {})
        for key, by in (("correlation", 50_000_000), ("stream", 3)):
            if isinstance(args.get(key), int):
                args[key] += by
        if "args" in event:
            new["args"] = args
        if event.get("ph") in ("s", "f") and event.get("cat") in ("ac2g", "async"):
            new["id"] = event["id"] + 50_000_000
        return new


def base_of(path: Path, recording: Recording, steps: Steps) -> Base:
    """A recording with its graph."""
    return Base(path, recording, steps, build(recording))


def base_from(document: Event, name: str = "made.json") -> Base:
    """The same of a document in memory."""
    recording = read(document)
    return base_of(Path(name), recording, steps_of(recording))
