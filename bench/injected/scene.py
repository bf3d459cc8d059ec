"""A graph being edited: which launches and rows its steps have, and how calls and work are put in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from bench.injected.graph import Graph, start
from bench.injected.read import Event, Recording, Row, Steps

CALL_NS: Final = 10_000
FEWEST_RUN: Final = 4
CBIDS: Final = {"DeviceSynchronize": 165, "StreamSynchronize": 131, "Malloc": 20, "Free": 22}


class Unfit(ValueError):
    """This recording cannot have this handicap."""


@dataclass
class Scene:
    """A graph to edit, and in which steps."""

    graph: Graph
    steps: Steps
    chosen: list[int]
    random: Random
    last_number: int = 0

    @property
    def recording(self) -> Recording:
        return self.graph.recording

    @property
    def unit(self) -> int:
        """What times of this file are multiples of, in ns."""
        return 1000 if self.recording.whole_us else 1

    def shares(self, total_ns: float, weights: list[int]) -> list[int]:
        """Parts of a time by weights, whole in the unit of the file, that add up to it."""
        parts, given, sum_, whole = [], 0, 0, sum(weights) or 1
        for weight in weights:
            sum_ += weight
            upto = round(total_ns * sum_ / whole / self.unit) * self.unit
            parts.append(upto - given)
            given = upto
        return parts

    def launches(self, step: int) -> list[Row]:
        """Calls of a step that launch kernels."""
        calls = [call for call in self.steps.calls[step] if "emcpy" not in call.name]
        return [call for call in calls if self.graph.at[start(call.index)] is not None]

    def work(self, step: int, kind: Callable[[Row], bool]) -> list[Row]:
        """GPU rows of a step, by stream and time."""
        rows = [row for call in self.steps.calls[step] for row in self.recording.work_of[call.index]]
        return [row for row in rows if kind(row)]

    def spread(self, calls: list[Row], count: int) -> list[Row]:
        """So many of these, evenly."""
        count = max(1, min(count, len(calls)))
        return [calls[(2 * number + 1) * len(calls) // (2 * count)] for number in range(count)]

    def number(self) -> int:
        """A correlation that no other row has."""
        if not self.last_number:
            self.last_number = max(call.correlation or 0 for call in self.recording.calls) + 1_000_000
        self.last_number += 1
        return self.last_number

    def event(self, row: Row, number: int, **other: object) -> Event:
        """A copy of the event of a row, of another correlation."""
        event = dict(self.recording.events[row.index])
        args = dict(event.get("args") or {})
        args["correlation"] = number
        if "External id" in args:
            args["External id"] = number
        return event | {"args": args} | other

    def call(self, like: Row, suffix: str, after: int, gap: int, lasts: int) -> int:
        """A call of the CUDA or HIP runtime that launches nothing, on the thread of another."""
        name = ("hip" if like.name.startswith("hip") else "cuda") + suffix
        event = self.event(like, self.number(), name=name, cat=self._runtime())
        event["args"] = {
            k: v for k, v in event["args"].items() if k in ("External id", "correlation", "cbid")
        }
        if "cbid" in event["args"]:
            event["args"]["cbid"] = CBIDS[suffix]
        return self.graph.insert(event, after, gap, lasts)

    def _runtime(self) -> str:
        cats = {str(self.recording.events[call.index]["cat"]) for call in self.recording.calls}
        return next(cat for cat in sorted(cats, reverse=True) if cat.lower() != "cuda_driver")

    def launch(
        self, call: Row, row: Row, after: int, behind: int, lasts: int, gap: int = 0
    ) -> tuple[int, int]:
        """The same launch and row once more: after a point of a thread, behind one of a stream."""
        number, graph = self.number(), self.graph
        made = graph.insert(self.event(call, number), after, gap, min(call.end - call.start, 2 * CALL_NS))
        work = graph.insert(self.event(row, number), behind, self.rounded(graph.gap_ns), lasts)
        graph.before[start(work)] = {**graph.before[start(work)], start(made): self.rounded(graph.latency_ns)}
        return made, work

    def rounded(self, time_ns: float) -> int:
        return round(time_ns / self.unit) * self.unit

    def each(self) -> Iterator[tuple[int, list[Row]]]:
        """The chosen steps and their launches."""
        for step in self.chosen:
            calls = self.launches(step)
            if len(calls) < FEWEST_RUN:
                raise Unfit("too few launches")
            yield step, calls
