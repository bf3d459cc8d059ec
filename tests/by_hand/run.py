"""A run said by hand, and what the product finds in it; "Add a hand-made run" of CONTRIBUTING.md tells how.

Times are in microseconds (or in `unit`), and the host is 10 us ahead of the GPU unless a launch is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import COPY_CODES, Recording, Row
from heuristics.judging.judgement import Judgement, judge
from tests.by_hand.names import CALLS, KERNELS, RANGES
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measurements import RankMeasurements, measure_rank
from traces.missing import Missing, known
from traces.names.kernels import classify_kernel
from traces.steps.selection import Selection, parse_selection
from traces.timeline import RankTimeline


class Parts(dict[str, float]):
    """Parts of time by name, none zero, seen to add up. `masked`, `decided`: of an account, as told there."""

    masked: float = 0
    decided: Mapping[str, float]


def in_unit(ns: int, unit_ns: int) -> float:
    """A plain int wherever it can be one."""
    return ns / unit_ns if ns % unit_ns else ns // unit_ns


def budget_parts(found: RankMeasurements, unit_ns: int) -> Parts:
    """The windows: compute by class, then exposed communication and copies by kind, then idle."""
    budget = found.budget
    parts_ns = {f"compute.{key}": ns for key, ns in budget.compute_by_class_ns.items()}
    parts_ns |= {f"exposed_comm.{kind}": ns for kind, ns in budget.exposed_comm_by_kind_ns.items()}
    parts_ns |= {f"exposed_copy.{kind}": ns for kind, ns in budget.exposed_copy_by_kind_ns.items()}
    parts_ns["idle"] = budget.idle_ns
    assert sum(parts_ns.values()) == budget.window_ns == found.steps.windows.total_ns
    assert _in_ledger(found, "budget") == budget.window_ns
    return _parts(parts_ns, unit_ns)


def account_parts(found: RankMeasurements, unit_ns: int) -> Parts:
    """Why no compute ran, by the names of the ledger; together the windows without compute."""
    account = found.account
    if isinstance(account, Missing):
        raise LookupError(account.reason)
    parts_ns = {f"launch_starved.{cause}": ns for cause, ns in account.launch_starved_ns.items()}
    parts_ns |= {f"blocking.{kind}": ns for kind, ns in account.blocking_ns.items()}
    parts_ns["launch_latency.arrival"] = account.arrival_ns
    parts_ns["launch_latency.kernel_gap"] = account.kernel_gap_ns
    for name in ("graph_opaque", "dependency_stalled", "trailing"):
        parts_ns[name] = getattr(account, f"{name}_ns")
    absent_ns = found.budget.window_ns - found.budget.compute_ns
    assert sum(parts_ns.values()) == absent_ns == sum(account.decided_ns.values())
    assert _in_ledger(found, "absent") == absent_ns
    parts = _parts(parts_ns, unit_ns)
    parts.masked = in_unit(account.masked_ns, unit_ns)
    parts.decided = _parts(account.decided_ns, unit_ns)
    return parts


def _in_ledger(found: RankMeasurements, group: str) -> int:
    return sum(sum(row.per_step_ns) for row in found.ledger if row.group == group)


def _parts(parts_ns: Mapping[str, int], unit_ns: int) -> Parts:
    return Parts({name: in_unit(ns, unit_ns) for name, ns in parts_ns.items() if ns})


US: Final = 1_000
UNITS: Final = {"us": US, "ms": 1_000 * US}
Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One file of a run. `at`, `on` and `process` give views of it, for lines that go into the same file.

    `sm_count` is of its GPUs, None: none is listed. `clock`: by how much its times are later than is told
    here, `gpu_clock`: by how much more those of its GPUs. `ahead_us`: from a launch to its work.
    """

    unit: str = "us"
    name: str = "run"
    sm_count: int | None = 132
    clock: float = 0
    gpu_clock: float = 0
    ahead_us: float = 10
    begin: float = 0
    where: dict[str, int] = field(default_factory=dict)
    recording: Recording = field(default_factory=Recording)
    step_counts: Counter[int] = field(default_factory=Counter)

    def at(self, begin: float) -> Run:
        """The same run, whose times count from there."""
        return replace(self, begin=self.begin + begin)

    def on(self, **where: int) -> Run:
        """The same run on this `stream`, `thread`, `device` or `process` where a line says nothing else."""
        return replace(self, where=self.where | where)

    def process(self, number: int, *, rank: int | None = None, **where: int) -> Run:
        """The same run in another process, which has a GPU of its own unless `device` says which."""
        view = self.on(**{"process": number, "device": number} | where)
        if rank is not None:
            self.recording.mpi_rank(view._thread({})["pid"], rank)
        return view

    def work(
        self, name: str, start: float, end: float, *, launch: float | Span | None = None,
        launched: bool = True, of: int | None = None, node: int | None = None, blocks: int | None = None,
        **about: Any,
    ) -> int:  # fmt: skip
        """A kernel, copy, `memset` or whole `graph` replay; gives the number that its launch call has too.

        `launch`: when it was launched, or from when to when; not `launched`: no call was recorded. `of` is
        the number of a call that launched it, such as a graph's, whose `node` it is; `blocks` of a kernel.
        `about`: stream, thread, device, process, and what `Recording` takes (`size_bytes`, `pageable`, ...).
        """
        about = self.where | about
        place = {key: value for key, value in about.items() if key not in ("process", "thread")}
        place |= {**self._thread(about), "correlation_id": of, "graph_node_id": node}
        if launched and of is None:
            place["launch_ns"], place["launch_end_ns"] = self._launch(start, launch)
        times = [self.ns(time + self.gpu_clock) for time in (start, end)]
        if name in COPY_CODES:
            return self.recording.copy(name, *times, **{"size_bytes": 1 << 20} | place)
        if name == "memset":
            return self.recording.memset(*times, **{"size_bytes": 1 << 20} | place)
        if name == "graph":
            return self.recording.graph_replay(*times, **place)
        kernel = KERNELS.get(name, name)
        blocks = blocks or (16 if classify_kernel(kernel).class_ == "comm" else 132)  # which fill an H100
        return self.recording.kernel(kernel, *times, grid=(blocks, 1, 1), **place)

    def call(self, name: str, start: float, end: float, *, stream: int | None = None, **where: int) -> int:
        """A call that launches nothing; a `stream` is the one that a synchronisation waits for."""
        times, thread = (self.ns(start), self.ns(end)), self._thread(where)
        number = self.recording.call(CALLS.get(name, name), *times, **thread)
        if stream is not None:
            about = {"correlation_id": number, "stream": stream, **self._process(where)}
            self.recording.synchronisation("stream", *times, **about)
        return number

    def wait(self, stream: int, by: int, *, recorded: float, waits: float, with_id: bool = True) -> None:
        """Stream `by` waits for what `stream` was given so far; by its id, or by the event's name alone."""
        us = US / UNITS[self.unit]
        record = self.call("event_record", recorded, recorded + us)
        about = {"event_id": 5, "sync_id": record if with_id else None, **self._process({})}
        self.recording.event_record(stream=stream, correlation_id=record, **about)
        about |= {"stream": by, "correlation_id": self.call("stream_wait", waits, waits + us)}
        self.recording.synchronisation("stream wait", self.ns(waits), self.ns(waits) + US, **about)

    def range(self, text: str, start: float, end: float | None, **where: int) -> None:
        """An NVTX range; without an end it was never closed."""
        closed_ns = None if end is None else self.ns(end)
        self.recording.range(RANGES.get(text, text), self.ns(start), closed_ns, **self._thread(where))

    def step(self, start: float, end: float, *, text: str = "iteration {}", number: int | None = None) -> Run:
        """A step: a range around the launches of what starts in it. Gives the run, from its start on."""
        thread = self._thread({})
        number = self.step_counts[thread["pid"]] if number is None else number
        self.step_counts[thread["pid"]] = number + 1
        self.recording.range(text.format(number), self._launch(start)[0], self._launch(end)[0], **thread)
        return self.at(start)

    def steps(self, count: int, *, every: float, **how: Any) -> list[Run]:
        """Steps one after the other: `for step in run.steps(4, every=100): step.work("gemm", 0, 90)`."""
        return [self.step(place * every, (place + 1) * every, **how) for place in range(count)]

    def flush(self, start: float, end: float, **where: int) -> None:
        """The profiler writes its buffers."""
        thread = self.recording.global_id(*self._thread(where).values())
        row: Row = {"start": self.ns(start), "end": self.ns(end), "globalTid": thread, "nameId": "Flush"}
        self.recording.rows.setdefault("PROFILER_OVERHEAD", []).append(row)

    def sample(self, time: float, *frames: tuple[str, str], **where: int) -> None:
        """A sample of a thread's stack: symbol and module of each frame, the innermost first."""
        self.recording.sample(self.ns(time), frames, **self._thread(where))

    def timelines(self) -> tuple[RankTimeline, ...]:
        """All processes on GPUs of the file, in order."""
        with written(self) as (path,):
            return build(read_trace(path)).ranks

    def rank(self, place: int = 0) -> RankTimeline:
        return self.timelines()[place]

    def measured(self, place: int = 0, window: Span | None = None, **selection: Any) -> RankMeasurements:
        """All measurements of a rank: of a window, or of a selection by the options of the command line."""
        chosen = parse_selection(**selection)
        if window is not None:
            chosen = Selection(start_ns=self.ns(window[0]), end_ns=self.ns(window[1]))
        return measure_rank(self.rank(place), chosen)

    def steps_found(self, place: int = 0, **selection: Any) -> list[Span]:
        """Start and end of each used step."""
        used = self.measured(place, **selection).steps.used
        return [(self.told(step.start_ns), self.told(step.end_ns)) for step in used]

    def budget(self, place: int = 0, window: Span | None = None, **selection: Any) -> Parts:
        """Where the windows went: `{"compute.gemm": 180, "exposed_comm.ep_dispatch": 10, "idle": 10}`."""
        return budget_parts(self.measured(place, window, **selection), UNITS[self.unit])

    def account(self, place: int = 0, window: Span | None = None, **selection: Any) -> Parts:
        """Why no compute ran: `{"launch_starved.python": 90, "blocking.ep_dispatch": 10}`, or LookupError."""
        return account_parts(self.measured(place, window, **selection), UNITS[self.unit])

    def judged(self, **selection: Any) -> Judgement:
        """What all ranks of the file are judged to be."""
        chosen = parse_selection(**selection)
        return judge([measure_rank(rank, chosen) for rank in self.timelines()])

    def walls(self, **selection: Any) -> dict[str, tuple[str, float | None]]:
        """Each wall's outcome and cost, None where it cannot be told."""
        walls = ((wall, known(wall.cost_ns)) for wall in self.judged(**selection).walls)
        return {
            one.id: (one.outcome, None if ns is None else in_unit(ns, UNITS[self.unit])) for one, ns in walls
        }

    def document(self, *others: Run, **options: Any) -> dict[str, Any]:
        """The document of the diagnosis, of this file or of several of one run."""
        with written(self, *others) as paths:
            return diagnoser.analyze(paths, ask_megatron=False, **options).to_dict()

    def ns(self, time: float) -> int:
        """A time as this file has it."""
        return round((self.begin + time + self.clock) * UNITS[self.unit])

    def told(self, ns: int) -> float:
        """A time of the file as it was told here."""
        return in_unit(ns - self.ns(0), UNITS[self.unit])

    def _launch(self, start: float, launch: float | Span | None = None) -> tuple[int, int]:
        if isinstance(launch, tuple):
            return self.ns(launch[0]), self.ns(launch[1])
        begin_ns = self.ns(start) - round(self.ahead_us * US) if launch is None else self.ns(launch)
        return begin_ns, begin_ns + 2 * US

    def _thread(self, where: dict[str, int]) -> dict[str, Any]:
        where = self.where | where
        pid = 1_000 * (where.get("process", 0) + 1)
        return {"pid": pid, "tid": pid + where.get("thread", 0)}

    def _process(self, where: dict[str, int]) -> dict[str, Any]:
        return {"pid": self._thread(where)["pid"], "device": (self.where | where).get("device", 0)}


@contextmanager
def written(*runs: Run, **how: Any) -> Iterator[list[Path]]:
    """The files of runs for as long as they are read; `how` as `write_export` takes it."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{run.name}.sqlite" for run in runs]
        for path, run in zip(paths, runs, strict=True):
            devices = [row.get("deviceId") or 0 for rows in run.recording.rows.values() for row in rows]
            while run.sm_count and len(run.recording.gpus) <= max(map(int, devices)):
                run.recording.gpu(sm_count=run.sm_count)
            write_export(path, run.recording, **how)
        yield paths


def ranks(count: int, **how: Any) -> list[Run]:
    """So many ranks of one run, each a file of its own, with its number as MPI tells it."""
    files = (Run(name=f"rank{number}", **how) for number in range(count))
    return [file.process(number, rank=number, device=0) for number, file in enumerate(files)]
