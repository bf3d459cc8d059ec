"""python -m bench.score.ranks: simulate runs of several ranks, analyse them, print how often it is right."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bench.score.corpus import FIRST_SEED
from bench.score.pool import scored, seeds
from bench.score.ranks.known import cases, farther_cases
from bench.score.ranks.one import score
from bench.score.ranks.table import table, wrong_ones
from bench.simulate.ranks.described import Cause


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and what is wrong go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.score.ranks", description=__doc__)
    parser.add_argument(
        "--seeds", type=seeds, default=seeds(f"{FIRST_SEED}:{FIRST_SEED + 12}"), help="FIRST:END"
    )
    parser.add_argument("--ranks", type=int, help="of every run; else 8 mostly, and up to 64")
    parser.add_argument("--only", choices=[cause.value for cause in Cause], help="one cause")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--farther", action="store_true", help="causes of nodes, of some steps, of pauses")
    options = parser.parse_args(words)
    asked = farther_cases(options.seeds) if options.farther else cases(options.seeds, options.ranks)
    results = scored(score, [one for one in asked if options.only in (None, one.cause.value)], options.jobs)
    for line in wrong_ones(results):
        print(line, file=sys.stderr)
    sys.stdout.write(table(results))


if __name__ == "__main__":
    main()
