"""python -m bench.compare_score: simulate pairs, compare them, print how often that is right, as markdown."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.compare_score.cases import Case, few_steps, kinds, one_cause, two_causes, unchanged, versions
from bench.compare_score.judge import score
from bench.compare_score.table import table, wrong_ones
from bench.score.pool import scored
from bench.simulate.identity import simulator_hash

_APART = 1_000_000
"""Seeds between two families."""


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and what is wrong go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare_score", description=__doc__)
    parser.add_argument("--seed", type=int, default=20_000_000, help="the first seed")
    parser.add_argument("--two", type=int, default=60, help="pairs with two causes")
    parser.add_argument("--unchanged", type=int, default=160, help="pairs without a cause")
    parser.add_argument("--few", type=int, default=64, help="pairs of four to seven steps")
    parser.add_argument("--share", type=float, default=1.0, help="of the pairs of every kind, these")
    parser.add_argument("--kept", default="", help="a file that is given all results, as JSON lines")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="pairs at once")
    parser.add_argument("--only", default="", help="cases whose family or name holds this")
    options = parser.parse_args(words)
    cases = [
        case
        for case in _cases(options.seed, options.two, options.unchanged, options.few, options.share)
        if options.only in f"{case.family}: {case.name}"
    ]
    results = scored(score, cases, options.jobs, "pairs")
    if options.kept:
        lines = (json.dumps(asdict(one)) + "\n" for one in results)
        Path(options.kept).write_text("".join(lines), encoding="utf-8")
    for line in wrong_ones(results):
        print(line, file=sys.stderr)
    said = table(results, date=date.today().isoformat(), simulator=simulator_hash(), seed=options.seed)
    sys.stdout.write(said)


def _cases(seed: int, two: int, same: int, few: int, share: float) -> Iterator[Case]:
    yield from one_cause(seed)
    yield from two_causes(seed + _APART, two)
    yield from unchanged(seed + 2 * _APART, same)
    yield from versions(seed + 3 * _APART)
    yield from few_steps(seed + 4 * _APART, few)
    yield from kinds(seed + 5 * _APART, share)


if __name__ == "__main__":
    main()
