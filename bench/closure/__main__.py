"""`make closure`: many random configurations, half of them illegal, and what of their advice fails."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Final

from heuristics.judging.judgement import judge_observed
from tests.configurations.closure import cures, steps, taken_back, waiting
from tests.megatron.random_runs import drawn_run, random_run

_PLANNED: Final = 5
_EVERY: Final = 250
"""Configurations between two lines of progress."""


def complaints(seed: int) -> list[str]:
    """What does not hold of a seed's configuration as drawn; of every fifth also made legal, with a plan."""
    return [*cures(drawn_run(Random(seed)).run), *(_of_plan(seed) if _has_plan(seed) else ())]


def _has_plan(seed: int) -> bool:
    return seed % _PLANNED == 0


def _of_plan(seed: int) -> Iterator[str]:
    one = random_run(Random(seed))
    found = judge_observed(one.evidence, one.given, one.configured)
    yield from steps(found)
    yield from waiting(found.plan)
    yield from taken_back(one, found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.closure", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="seeds, each of a configuration")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.runs)
    found: Counter[str] = Counter()
    examples: dict[str, int] = {}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for done, (seed, wrong) in enumerate(
            zip(seeds, pool.map(complaints, seeds, chunksize=20), strict=True), 1
        ):
            found.update(wrong)
            for one in wrong:
                examples.setdefault(one, seed)
                print(f"{one} (seed {seed})", file=sys.stderr, flush=True)
            if done % _EVERY == 0:
                print(f"{done:,} seeds, {found.total():,} complaints", file=sys.stderr, flush=True)
    planned = sum(map(_has_plan, seeds))
    print(f"{len(seeds):,} configurations, {planned:,} more with a plan: {found.total():,} complaints")
    for text, count in found.most_common():
        print(f"  {count:>5}  {text} (seed {examples[text]})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
