"""One side of a pair: knobs and kernels made longer -> a run, its recording, and the document of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.host_program import Launch, Operation, Program
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import Run, run_program
from bench.simulate.step import program_of

_TRUE_STEPS: Final = 12
"""Steps of a run on which the truth is found."""


@dataclass(frozen=True, slots=True)
class Side:
    """A run before its noise is drawn. `longer`: kernels of `bench.simulate.kernels`, each with a factor."""

    knobs: Knobs
    longer: tuple[tuple[str, float], ...] = ()


def simulate(side: Side, seed: int, step_count: int) -> Run:
    """A run of a side; the seed draws its noise."""
    knobs = replace(side.knobs, seed=seed, step_count=step_count)
    return run_program(knobs, _longer(program_of(knobs), _factors(side)))


def typical(side: Side) -> Side:
    """This side without what stands outside its typical steps: hiccups, a slow start, the first batch."""
    return replace(side, knobs=replace(side.knobs, hiccup_count=0, first_step_ms=0.0, first_batch_ms=0.0))


def _factors(side: Side) -> dict[str, float]:
    """How many times as long each kernel takes; named twice, it takes both."""
    factors: dict[str, float] = {}
    for kernel, longer in side.longer:
        factors[kernel] = factors.get(kernel, 1.0) * longer
    return factors


def diagnosed(simulated: Run, view: View) -> dict[str, Any]:
    """The document of a run, from the export that a view of it is written as."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, record(simulated, view), view.schema)
        return diagnoser.analyze(path).to_dict()


def true_delta(base: Side, new: Side, seeds: range, step_count: int) -> tuple[float, float]:
    """What a step of `new` takes longer, and what one of `base` takes, in ns: means over runs of these seeds.

    Both sides draw the same noise, so that little of it is left in the difference. Runs are no longer than
    `_TRUE_STEPS`: their first step counts as it does in a run of `step_count`.
    """
    base_ns, new_ns = (
        fmean(_mean_step_ns(typical(side), seed, step_count) for seed in seeds) for side in (base, new)
    )
    return new_ns - base_ns, base_ns


def _mean_step_ns(side: Side, seed: int, step_count: int) -> float:
    lengths_ns = simulate(side, seed, min(step_count, _TRUE_STEPS)).step_ns
    if step_count <= len(lengths_ns):
        return fmean(lengths_ns)
    return (lengths_ns[0] + (step_count - 1) * fmean(lengths_ns[1:])) / step_count


def _longer(program: Program, factors: Mapping[str, float]) -> Program:
    def edited(operation: Operation) -> Operation:
        if not isinstance(operation, Launch):
            return operation
        works = tuple(
            work._replace(alone_ns=round(work.alone_ns * factors.get(work.kernel, 1.0)))
            for work in operation.works
        )
        return operation._replace(works=works)

    if not factors:
        return program
    threads = {name: [edited(one) for one in operations] for name, operations in program.threads.items()}
    return Program(program.machine, threads)
