"""python -m bench.compare_score.loop: the recommended loop on simulated runs, from capture's line to compare.

A run is recorded as long as the line of `capture` records, and analyzed. Where the page proposes to record
longer, or to give the logs of both runs, that is done. Then a change is made that a fix stands for, of 5 to
30 % of the step, the run is recorded again, and both are compared. Unchanged runs go the same way.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import diagnoser
from bench.compare_score.cases import Case, sides, unchanged, views
from bench.compare_score.causes import CAUSES
from bench.compare_score.sides import Side, simulate
from bench.compare_score.table import Line
from bench.score.pool import scored
from bench.simulate.draws import between, uniform
from bench.simulate.export import write_export
from bench.simulate.identity import simulator_hash
from bench.simulate.recorded import View, record
from heuristics.comparison.comparison import compare
from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from traces.recording.options import Question, asked

LEAST_GAIN, MOST_GAIN = 0.05, 0.3
"""Of the step before."""
LOGGED: Final = 100
"""Iterations of a run's log, where the page asks for it: a few minutes of training."""
_SEEDS: Final = 20
_APART: Final = 1_000_000
"""Seeds between runs that change and runs that do not."""


@dataclass(frozen=True, slots=True)
class Looped:
    """One way through the loop. `gain_frac`: of the step before, truly; 0 for an unchanged run.

    `first`: whether the first recording was enough for the page to propose a comparison. `recorded`: steps of
    the recordings that were compared, None where the logs of both runs were. `said`: the verdict.
    """

    case: Case
    gain_frac: float
    first: bool = False
    recorded: int | None = None
    used: int = 0
    said: str = ""
    error: str = ""


def changes(first_seed: int, count: int) -> Iterator[Case]:
    """Every cause in turn, of a drawn size: the run before is slowed by it, and a fix takes it away."""
    for place in range(count):
        seed = first_seed + _SEEDS * place
        cause = CAUSES[place % len(CAUSES)]
        gain = between(uniform(f"{seed}/gain"), LEAST_GAIN, MOST_GAIN, by_factors=True)
        slower = min(gain / (1 - gain), cause.most)
        yield Case("one cause", (cause.name,), slower, asked(Question.WALLS).steps, seed)


def loop(case: Case) -> Looped:
    """One case; whatever goes wrong in it is in the result, and the others go on."""
    gain = case.frac / (1 + case.frac)
    try:
        return _looped(case, gain)
    except Exception as error:
        return Looped(case, gain, error=f"{type(error).__name__}: {error}")


def _looped(case: Case, gain: float) -> Looped:
    after, before = sides(case)
    view, (base_seed, new_seed) = views(case)[0], case.noise_seeds
    count, logged = asked(Question.WALLS).steps, False
    base = _analyzed(before, base_seed, count, view)
    found = enough_steps(base)
    first = found.decides
    if not found.decides and found.record:
        count = asked(found.record).steps
        base = _analyzed(before, base_seed, count, view)
        found = enough_steps(base)
    if not found.decides:
        logged = True
        base = _analyzed(before, base_seed, count, view, logged)
    compared = compare(base, _analyzed(after, new_seed, count, view, logged))
    size = compared.size
    return Looped(case, gain, first, None if logged else count, size.base_count, compared.verdict)


def _analyzed(side: Side, seed: int, step_count: int, view: View, logged: bool = False) -> Result:
    """A recording's document. `logged`: with the log of a run of its own, of which nothing was recorded."""
    with TemporaryDirectory() as folder:
        path, log = Path(folder) / "run.sqlite", Path(folder) / "run.log"
        write_export(path, record(simulate(side, seed, step_count), view), view.schema)
        if logged:
            log.write_text("".join(_iterations(simulate(side, seed, LOGGED).step_ns)), encoding="utf-8")
        return diagnoser.analyze(path, log=log if logged else None, ask_megatron=False).result


def _iterations(step_ns: Sequence[int]) -> Iterator[str]:
    """Lines as Megatron-LM prints them, a step each."""
    for number, length_ns in enumerate(step_ns, 1):
        yield (
            f" iteration {number:8d}/{len(step_ns):8d} | consumed samples: {8 * number:12d} |"
            f" elapsed time per iteration (ms): {length_ns / 1e6:.1f} | global batch size:     8 |"
            " lm loss: 1.000000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )


def lines(results: Sequence[Looped]) -> list[Line]:
    """Every figure that is asked for."""
    told = [one for one in results if not one.error]
    changed, same = ([one for one in told if bool(one.gain_frac) is is_it] for is_it in (True, False))
    return [
        _line("a comparison is proposed after the first recording", "", [one.first for one in told]),
        _line("a comparison of recordings alone is proposed", "", [one.recorded is not None for one in told]),
        *(
            _line(f"gains of {100 * low:.0f} to {100 * high:.0f} %: decided as faster", "95 %", [
                one.said == "improvement" for one in changed if low <= one.gain_frac < high
            ])
            for low, high in ((LEAST_GAIN - 1e-9, 0.1), (0.1, MOST_GAIN + 1e-9))
        ),
        _line("all gains: decided as faster", "95 %", [one.said == "improvement" for one in changed]),
        _line("all gains: none decided as slower", "all", [one.said != "regression" for one in changed]),
        _line("unchanged: no false alarm", "97 %", [
            one.said not in ("improvement", "regression") for one in same
        ]),
    ]  # fmt: skip


def _line(what: str, asked_for: str, holds: Sequence[bool]) -> Line:
    return Line(what, sum(holds), len(holds), asked_for)


def table(results: Sequence[Looped], *, seed: int) -> str:
    """All figures as markdown."""
    steps = Counter(one.recorded for one in results if not one.error)
    failed = sum(bool(one.error) for one in results)
    said = ", ".join(
        f"{count or 'with logs'}: {steps[count]}" for count in sorted(steps, key=lambda one: one or 99)
    )
    return "\n".join(
        [
            f"The loop, on {date.today().isoformat()}: {len(results)} runs, first seed {seed}, "
            f"simulator `{simulator_hash()}`; {failed} could not be compared. "
            f"Steps recorded a side, with the runs that needed them: {said}.",
            "",
            "| what | asked | of the runs |",
            "| --- | --- | --- |",
            *(line.text for line in lines(results)),
            "",
        ]
    )  # fmt: skip


def wrong_ones(results: Sequence[Looped]) -> Iterator[str]:
    """A line for every run that was not decided as it should be."""
    for one in results:
        right = one.said == "improvement" if one.gain_frac else one.said not in ("improvement", "regression")
        if one.error or not right:
            what = one.error or f"said {one.said}, {one.recorded or 'no'} steps recorded, {one.used} used"
            yield f"{one.case.name}, gains {one.gain_frac:.1%}, seed {one.case.seed}: {what}"


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and what is wrong go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare_score.loop", description=__doc__)
    parser.add_argument("--seed", type=int, default=60_000_000, help="the first seed")
    parser.add_argument("--changed", type=int, default=3 * len(CAUSES), help="runs that change")
    parser.add_argument("--unchanged", type=int, default=100, help="runs that do not")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    options = parser.parse_args(words)
    cases = [
        *changes(options.seed, options.changed),
        *unchanged(options.seed + _APART, options.unchanged),
    ]
    results = scored(loop, cases, options.jobs)
    for line in wrong_ones(results):
        print(line, file=sys.stderr)
    sys.stdout.write(table(results, seed=options.seed))


if __name__ == "__main__":
    main()
