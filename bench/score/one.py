"""One run, simulated, recorded, diagnosed and held beside its truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, Final

import diagnoser
from bench.score import truth
from bench.score.built import is_as_built
from bench.score.corpus import Case
from bench.score.naive import raw_shares
from bench.score.true_account import account
from bench.simulate.export import write_export
from bench.simulate.recorded import START_NS, record
from bench.simulate.recording import Recording

_NEAR_STEP: Final = 0.01
"""Borders that far from the true ones, as part of a step, are the true ones."""
_BY_OPTIMIZER: Final = ("optimizer", "period")
"""Ways of finding steps by which a step ends with its optimizer."""
_TABLES: Final = {
    "events": "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "metrics": "GPU_METRICS",
    "memory": "CUDA_GPU_MEMORY_USAGE_EVENTS",
}
_WHOLE: Final = ("warm-up", "hiccup")
"""Why a step is left out that was found as the whole step it is."""
_GPU_TABLES: Final = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


@dataclass(frozen=True, slots=True)
class Result:
    """One scored run. Fractions are of the steps the diagnosis used; `error` says why there is no diagnosis.

    `told`: wall -> outcome. `found_frac`, None where no cost was given, beside `true_frac`. `rows`: account
    row -> what was found (None: not told) and what is true. `steps_true`, `steps_found`, `steps_used`: how
    many were recorded whole, how many of them were named with their borders, how many were used;
    `steps_usable`: how many are no warm-up, `steps_slow`: of these hiccups; `steps_wrong`: used, but no step.
    `step_ns`: the mean of typical steps, found and true; `kind`: of the verdict's wall; `data_frac`: what
    waiting for data costs, found and true, in runs whose steps wait. `next_wall`: the wall said to
    come after the verdict's; `next_frac`: what the others truly cost then, empty where no two are walls.
    `proofs`: the replay's two, and what the second truly is. `made`: how the run was made, where finding its
    steps hangs on it. `as_built`: whether a scenario truly is what it is built for, None of other runs.
    """

    family: str
    group: str
    name: str
    recorded: Mapping[str, str]
    true_frac: Mapping[str, float]
    retries: bool
    hidden: tuple[str, ...]
    veiled: tuple[str, ...]
    wall: str | None = None
    tied_with: tuple[str, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    found_frac: Mapping[str, float | None] = field(default_factory=dict)
    rows: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)
    steps_true: int = 0
    steps_found: int = 0
    steps_used: int = 0
    steps_usable: int = 0
    steps_slow: int = 0
    steps_wrong: int = 0
    step_source: str = ""
    step_ns: tuple[float | None, float] = (None, 0.0)
    kind: str | None = None
    data_frac: tuple[float | None, float] = (None, 0.0)
    next_wall: str | None = None
    next_frac: Mapping[str, float] = field(default_factory=dict)
    proofs: Mapping[str, float | None] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    as_built: bool | None = None
    raw: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


def score(case: Case) -> Result:
    """Score one case; whatever goes wrong in the diagnosis is in the result."""
    by_step, by_optimizer = truth.truths(case.knobs, case.view)
    simulated = by_step.run
    basis: dict[str, Any] = {
        "family": case.family,
        "group": case.group,
        "name": case.name,
        "hidden": truth.hidden_walls(case, simulated),
        "veiled": truth.veiled_walls(case, simulated),
        "steps_true": len(by_step.recorded),
        "steps_usable": len(by_step.recorded) - truth.warms_up(by_step),
        "steps_slow": len(by_step.recorded) - truth.warms_up(by_step) - len(truth.typical_steps(by_step)),
        "made": _made(case),
        "as_built": None if case.scenario is None else is_as_built(case.scenario, by_step),
    }
    recording = record(simulated, case.view)
    basis["recorded"] = _recorded(case, recording)
    _damage(recording, case.damage)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, recording, case.view.schema)
        raw = raw_shares(path)
        try:
            document = diagnoser.analyze(path).to_dict()
        except Exception as error:  # a run that cannot be diagnosed is a result, and the others go on
            said = f"{type(error).__name__}: {error}"
            everything = truth.costs_of(by_step.costs, by_step.recorded)
            retries = truth.retries_in_steady_steps(simulated, by_step.recorded)
            return Result(**basis, raw=raw, true_frac=everything, retries=retries, error=said)
    rank = document["ranks"][0]
    told = by_optimizer if rank["steps"]["source"] in _BY_OPTIMIZER else by_step
    borders = _borders(told)
    steps = _used(borders, rank, told.recorded)
    typical_ns = mean(told.costs.step_ns[step] for step in truth.typical_steps(told))
    costs, judged = truth.costs_of(told.costs, steps), _judged(document)
    windows = [(told.borders_ns[step], told.borders_ns[step + 1]) for step in steps]
    return Result(
        **basis,
        raw=raw,
        true_frac=costs,
        retries=truth.retries_in_steady_steps(simulated, steps),
        next_frac=truth.next_costs(told, judged["wall"], steps) if _has_next(case, judged, costs) else {},
        **judged,
        step_ns=(rank["steps"]["mean_ns"], typical_ns),
        data_frac=(_data_frac(document, rank), truth.waits_for_data_frac(told, steps)),
        **_steps([borders[step] for step in told.recorded], rank),
        proofs=_proofs(rank, truth.elastic_frac(told, steps)),
        rows=_rows(rank, account(simulated, windows)),
    )


def _has_next(case: Case, judged: Mapping[str, Any], costs: Mapping[str, float]) -> bool:
    """Whether a wall was said, and another may stand behind it."""
    walls = sum(frac >= truth.WALL_FRAC for frac in costs.values())
    masks = case.scenario is not None and case.scenario.masked is not None
    return judged["wall"] is not None and (walls > 1 or masks)


def _recorded(case: Case, recording: Recording) -> dict[str, str]:
    """The view, and of what hangs on a table whether the schema has it."""
    there = {what: table in recording.rows for what, table in _TABLES.items()}
    said = asdict(case.view)
    begins, ends, _ = (said.pop(name) for name in ("begin_frac", "end_frac", "flushed"))
    cut = " and ".join(word for word, frac in (("begin", begins), ("end", ends)) if frac)
    return {key: str(there.get(key, value)) for key, value in said.items()} | {"cut": cut or "no"}


def _made(case: Case) -> dict[str, str]:
    knobs = case.knobs
    return {
        "end of step": knobs.end_of_step,
        "optimizers": knobs.optimizers,
        "accumulation": str(knobs.microbatch_count),
    }


def _damage(recording: Recording, damage: str) -> None:
    """Set the GPU's clock apart from the host's, by the milliseconds that the damage names."""
    if not damage:
        return
    offset_ns = int(damage.removeprefix("clocks ")) * 1_000_000
    for table in _GPU_TABLES:
        for row in recording.rows.get(f"CUPTI_ACTIVITY_KIND_{table}", ()):
            row["start"], row["end"] = int(row["start"] or 0) + offset_ns, int(row["end"] or 0) + offset_ns


def _borders(told: truth.Told) -> list[tuple[int, int]]:
    """True steps on the recording's clock."""
    return list(pairwise(START_NS + border for border in told.borders_ns))


def _used(borders: Sequence[tuple[int, int]], rank: Mapping[str, Any], recorded: range) -> list[int]:
    """True steps of which more than half lies in the windows; all recorded ones where none does."""
    windows = rank["windows_ns"]
    used = [
        step
        for step, (start, end) in enumerate(borders)
        if sum(max(0, min(end, b) - max(start, a)) for a, b in windows) > (end - start) / 2
    ]
    return used or list(recorded)


def _judged(document: Mapping[str, Any]) -> dict[str, Any]:
    verdict, walls = document["verdict"], document["walls"]
    return {
        "wall": verdict["wall"],
        "tied_with": tuple(verdict["tied_with"]),
        "kind": verdict["kind"],
        "next_wall": verdict["next_wall"],
        "told": {wall["id"]: wall["outcome"] for wall in walls},
        "found_frac": {wall["id"]: _cost_frac(wall) for wall in walls},
    }


def _cost_frac(wall: Mapping[str, Any]) -> float | None:
    """A wall's cost; where only its capacity could not be told, the cost stands in the evidence."""
    said = [one["value"] for one in wall["evidence"] if one["measure"] == "cost_frac"]
    value = wall["cost_frac"] if wall["cost_frac"] is not None else next(iter(said), None)
    return None if value is None else float(value)


def _data_frac(document: Mapping[str, Any], rank: Mapping[str, Any]) -> float | None:
    """What is said that waiting for data costs; None where the host's cost is not told."""
    (host,) = (wall for wall in document["walls"] if wall["id"] == "host_overhead")
    if host["cost_ns"] is None:
        return None
    return float(host["cost_by_kind_ns"].get("data", 0) / rank["budget_ns"]["window"])


def _steps(borders: Sequence[tuple[int, int]], rank: Mapping[str, Any]) -> dict[str, Any]:
    """How the whole steps, by their true borders, were found."""
    steps = rank["steps"]
    whole = [step for step in steps["dropped"] if step["reason"].startswith(_WHOLE)]
    used = [(step["start_ns"], step["end_ns"]) for step in steps["used"]]
    named = [*used, *((step["start_ns"], step["end_ns"]) for step in whole)]
    return {
        "steps_found": sum(any(_same(step, other) for other in named) for step in borders),
        "steps_used": len(used),
        "steps_wrong": sum(not any(_same(step, other) for step in borders) for other in used),
        "step_source": steps["source"],
    }


def _proofs(rank: Mapping[str, Any], true_elastic_frac: float) -> dict[str, float | None]:
    """The replay's proofs, None where there is no replay, and by how much the steps truly shrink."""
    replayed, names = rank["replay"] or {}, ("residual_free_error_frac", "elastic_frac")
    return {name: replayed.get(name) for name in names} | {"true_elastic_frac": true_elastic_frac}


def _same(step: tuple[int, int], other: tuple[int, int]) -> bool:
    near = _NEAR_STEP * (step[1] - step[0])
    return abs(step[0] - other[0]) <= near and abs(step[1] - other[1]) <= near


def _rows(rank: Mapping[str, Any], true_ns: Mapping[str, int]) -> dict[str, tuple[float | None, float]]:
    """Rows of the account as fractions of the window: found, and true."""
    budget, absent = rank["budget_ns"], rank["absent_ns"]
    found_ns = {row: budget[row] for row in ("compute", "exposed_comm", "exposed_copy", "idle")}
    if absent is not None:
        copies = sum(ns for kind, ns in absent["blocking"].items() if kind.startswith("mem"))
        found_ns |= {
            "host": sum(absent["launch_starved"].values()),
            "blocking_comm": sum(absent["blocking"].values()) - copies,
            "blocking_copy": copies,
            "latency": sum(absent["launch_latency"].values())
            + absent["graph_opaque"]
            + absent["dependency_stalled"],
            "trailing": absent["trailing"],
        }
    whole = true_ns["compute"] + true_ns["exposed_comm"] + true_ns["exposed_copy"] + true_ns["idle"]
    return {row: (_frac(found_ns.get(row), budget["window"]), ns / whole) for row, ns in true_ns.items()}


def _frac(ns: int | None, whole_ns: int) -> float | None:
    return None if ns is None else ns / whole_ns
