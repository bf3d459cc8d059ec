"""Simulated runs, recorded, written, read and measured: from knobs, and those of the demo."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run as simulate
from diagnoser.demo import unpack
from heuristics.evidence.evidence import RunEvidence, observe
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measurements import measure_rank
from traces.steps.selection import Selection


@cache
def observed(knobs: Knobs) -> RunEvidence:
    """A simulated run, recorded, written as an export, read and measured."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, record(simulate(knobs), View(ranges="layers", memory=True)))
        (rank,) = build(read_trace(path)).ranks
        return observe([measure_rank(rank, Selection())])


@cache
def scenario(name: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.sqlite"
        unpack(path, name)
        return diagnoser.analyze(path).to_dict()
