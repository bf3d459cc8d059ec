"""python -m bench.compare_score.predicted: fixes made in simulated runs, held against the plan that had them.

A run that lacks a change of `bench.score.changes_by_truth` is recorded and analyzed, the change is made, the
run is recorded again, with other noise, and both are compared. What the page says of the fix that stands for
the change is counted: as predicted, open, missed or more, and whether it says why.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import diagnoser
from bench.compare_score.table import Line
from bench.score.changes_by_truth import TRIALS
from bench.score.pool import scored
from bench.simulate.engine import execute
from bench.simulate.export import write_export
from bench.simulate.knobs import draw_knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import Run, run_of, run_program
from bench.simulate.step import program_of
from diagnoser.diagnosis import Diagnosis
from heuristics.result.expected import Expected
from heuristics.result.judged import Fix
from traces.recording.options import SPARE, Question, asked

FIXES: Final = {
    **dict.fromkeys(("graph_attn", "graph_moe_router", "graph_moe_preprocess", "graph_scopes"), "HST-3"),
    "fused_kernels": "HST-4",
    "collection_at_edges": "HST-2",
    "no_collection": "HST-2",
    "token_counts_stay": "HST-6",
    "expert_overlap": "COM-1",
    "faster_dispatcher": "COM-2",
    "recompute_dropped": "MEM-2",
    "recompute_narrowed": "MEM-2",
    "no_retries": "MEM-1",
    "grouped_experts": "CMP-1",
}
"""Trial -> the fix of the catalogue that makes the change."""
_SHORT: Final = {"layer_count": 3, "step_count": asked(Question.WALLS).steps - SPARE}
_HEAVY: Final = {"dispatcher": "alltoall", "python_us": 25.0, "dispatch_us": 200.0, "attention_us": 40.0}
"""What lets most changes gain something: a late host, and exchanges that are seen."""
_EXPLAINED: Final = frozenset({"came_back_elsewhere", "other_extent", "not_active", "changed_together"})
_OTHER_NOISE: Final = 500_000


@dataclass(frozen=True, slots=True)
class Predicted:
    """What is said of the fix; `outcome` is empty where the plan does not have it. Times in ns a step."""

    trial: str
    seed: int
    outcome: str = ""
    conclusion: str = ""
    said: str = ""
    error: str = ""

    @property
    def agrees(self) -> bool:
        """As predicted, or open because steps vary too much or the plan has no range."""
        return self.outcome == "met" or (self.outcome == "undecided" and self.conclusion not in _EXPLAINED)


def tried(case: tuple[str, int]) -> Predicted:
    """One trial of one seed; whatever goes wrong is in the result."""
    try:
        return _tried(*case)
    except Exception as error:
        return Predicted(*case, error=f"{type(error).__name__}: {error}")


def _tried(name: str, seed: int) -> Predicted:
    trial, id_ = TRIALS[name], FIXES[name]
    knobs = draw_knobs(seed, **{**_SHORT, **_HEAVY, **trial.lacks(seed)})
    before = run_program(knobs, program_of(knobs))
    made = replace(knobs, seed=seed + _OTHER_NOISE, **trial.knobs(knobs))  # type: ignore[arg-type]
    program = program_of(made)
    after = run_of(made, execute(trial.program(program) if trial.program else program))
    with TemporaryDirectory() as folder:
        base, new = (_document(run, Path(folder) / file) for run, file in ((before, "a"), (after, "b")))
        planned = (*base.result.fixes, *base.result.levers)
        fix = next((one for one in planned if one.id == id_), None)
        if fix is None or not fix.gain_frac:
            return Predicted(name, seed)
        configs: dict[str, Any] = {} if name.startswith("graph") else _configs(fix, Path(folder))
        found = diagnoser.compare(base, new, **configs).result.expected
    one = next((one for one in found if one.fixes == (id_,)), None)
    return Predicted(name, seed) if one is None else _said(name, seed, one)


def _said(name: str, seed: int, one: Expected) -> Predicted:
    said = f"predicted {one.predicted_ns}, gained {one.gained_ns} in {one.ci95_ns}, {one.together_with}"
    return Predicted(name, seed, one.outcome, one.conclusion, said)


def _document(run: Run, path: Path) -> Diagnosis:
    write_export(path.with_suffix(".sqlite"), record(run, View()))
    return diagnoser.analyze(path.with_suffix(".sqlite"), ask_megatron=False)


def _configs(fix: Fix, folder: Path) -> dict[str, Any]:
    """Two scripts, of which the second has the flags of the fix: what a trace does not show, they do."""
    plain = "python pretrain_gpt.py --num-experts 8"
    texts = {"base_config": plain, "new_config": " ".join((plain, *fix.knobs.megatron_lm))}
    for name, text in texts.items():
        (folder / f"{name}.sh").write_text(text + "\n", encoding="utf-8")
    return {name: folder / f"{name}.sh" for name in texts}


def lines(results: Sequence[Predicted]) -> Iterator[Line]:
    """Of all changes whose fix was planned and seen: agreement, and what is explained beside it."""
    for name in (*dict.fromkeys(one.trial for one in results), ""):
        mine = [one for one in results if one.outcome and name in ("", one.trial)]
        yield _line(f"{name or 'all'}: as predicted, or open", [one.agrees for one in mine])
    yield _line("all: that, or the page says why not", [_holds(one) for one in results if one.outcome])
    yield _line("all: planned, and seen in the new run", [bool(one.outcome) for one in results])


def _holds(one: Predicted) -> bool:
    return one.agrees or one.conclusion in _EXPLAINED


def _line(what: str, holds: Sequence[bool]) -> Line:
    return Line(what, sum(holds), len(holds), "")


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and what is not as predicted go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare_score.predicted", description=__doc__)
    parser.add_argument("trials", nargs="*", default=[*TRIALS])
    parser.add_argument("--runs", type=int, default=4, help="runs of each change")
    parser.add_argument("--seed", type=int, default=70_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    options = parser.parse_args(words)
    cases = [(name, options.seed + place) for name in options.trials for place in range(options.runs)]
    results = scored(tried, cases, options.jobs)
    for one in results:
        if one.error or (one.outcome and not one.agrees):
            print(
                f"{one.trial}, seed {one.seed}: {one.outcome} {one.conclusion} {one.said}{one.error}",
                file=sys.stderr,
            )
    print(
        "\n".join(
            ("| what | asked | of the runs |", "| --- | --- | --- |", *(line.text for line in lines(results)))
        )
    )


if __name__ == "__main__":
    main()
