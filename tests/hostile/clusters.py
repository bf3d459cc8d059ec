"""Clusters of this machine, runs of many small traces for them, and what ends a worker midway."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.simulate.knobs import Knobs
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, RanksRun
from bench.simulate.ranks.happened import simulate
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.recorded import Capture, write_ranks
from diagnoser import analyze
from traces.progress import Progress, silent


def small_traces(folder: Path, count: int) -> list[Path]:
    """A run of so many ranks, a multiple of four, by rank; several of its fixes are replayed together."""
    small = Knobs(step_count=3, layer_count=1, microbatch_count=1)
    knobs = replace(small, python_us=60.0, recompute="full", retries_per_step=2.0)
    layout = Layout(expert=4, data=count, ranks_per_host=8)
    run = RanksRun(3, layout, knobs, Cause.SLOW_DEVICE, rank=1, strength=1.5)
    return [one.path for one in write_ranks(simulate(run), folder, draw_clocks(run), Capture(mpi=True))]


@contextmanager
def local_cluster(workers: int = 2, allowed_failures: int = 3) -> Iterator[Any]:
    """A scheduler and workers, each a process that is started again when it ends."""
    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
    ):
        yield cluster


def processes_of(cluster: Any) -> list[int]:
    """The processes of its workers."""
    return [nanny.pid for nanny in cluster.workers.values()]


@dataclass
class Killer:
    """Listens, and kills the first worker once so many of the traces are done."""

    cluster: Any
    after: int
    killed: int | None = None
    heard: list[str] = field(default_factory=list)

    def __call__(self, doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        self.heard.append(doing)
        if self.killed is None and doing.startswith(f"{self.after} of "):
            self.killed = processes_of(self.cluster)[0]
            os.kill(self.killed, signal.SIGKILL)


def document(paths: Sequence[Path], scheduler: str | None = None, progress: Progress = silent) -> bytes:
    """The document that the traces give, as it is written."""
    found = analyze(paths, scheduler=scheduler, progress=progress).to_dict()
    return json.dumps(found, indent=1).encode()
