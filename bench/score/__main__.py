"""python -m bench.score: simulate, diagnose, and print how often the diagnosis is right, as markdown."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.score.corpus import FIRST_SEED, corpus
from bench.score.one import score
from bench.score.pool import scored
from bench.score.table import table, wrong_ones
from bench.simulate.identity import simulator_hash


def main(words: Sequence[str] | None = None) -> None:
    """Score as the command line says; progress and wrong verdicts go to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.score", description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="drawn runs, beside the families")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--only", default="", help="one family, such as scenarios or steps")
    parser.add_argument("--json", type=Path, help="write every result here as well")
    options = parser.parse_args(words)
    try:
        cases = corpus(options.seed, options.runs, options.only)
    except ValueError as error:
        parser.error(str(error))
    results = scored(score, cases, options.jobs)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results]), encoding="utf-8")
    for line in wrong_ones(results):
        print(line, file=sys.stderr)
    seeds = f"{options.seed} to {options.seed + options.runs - 1}"
    sys.stdout.write(table(results, date=date.today().isoformat(), simulator=simulator_hash(), seeds=seeds))


if __name__ == "__main__":
    main()
