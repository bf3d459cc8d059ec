"""python -m bench.score.third: simulate coupled ranks, analyse their files, print how often it is right."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bench.score.pool import scored, seeds
from bench.score.third.one import Case, score
from bench.score.third.table import table, wrong_ones
from bench.third.handicaps import Kind


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and what is wrong go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.score.third", description=__doc__)
    parser.add_argument("--seeds", type=seeds, default=seeds("1:14"), help="FIRST:END")
    parser.add_argument("--only", choices=[kind.value for kind in Kind], action="append", help="handicaps")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    options = parser.parse_args(words)
    kinds = [kind for kind in Kind if options.only is None or kind.value in options.only]
    results = scored(score, [Case(kind, seed) for seed in options.seeds for kind in kinds], options.jobs)
    for line in wrong_ones(results):
        print(line, file=sys.stderr)
    sys.stdout.write(table(results))


if __name__ == "__main__":
    main()
