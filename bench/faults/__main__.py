"""python -m bench.faults kills|steps|room|together: disturb real runs, and print what that did as a table.

kills: killed at random moments by SIGKILL, SIGTERM, SIGINT, SIGHUP. steps: killed before each step on
the disk in turn. room: with ever less room to write. together: eight runs at once on one report and one
cache. Ends with 1 where anything was wrong. MOE_DIAG_TRACES names the folder of the reports; nothing is
exported without it.
"""

import argparse
import gc
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.faults.disturbed import drawn, killed_at, with_room_for
from bench.faults.jobs import Job, jobs, put_inputs
from bench.faults.together import together
from bench.faults.trial import Bench, Trial

_ROOMS: Final = (0, 1, 100, 1_000, 4_096, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Bytes that no file may outgrow."""

Trials = Callable[[Bench, argparse.Namespace], Iterator[Trial]]


def main(words: Sequence[str] | None = None) -> int:
    """Disturb as the command line says; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("how", choices=[*_WAYS, "together"])
    parser.add_argument("--count", type=int, default=20, help="kills of each job; rounds of eight")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="jobs by name")
    options = parser.parse_args(words)
    traces = os.environ.get("MOE_DIAG_TRACES")
    reports = Path(traces) if traces else None
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        if options.how == "together":
            return together(Path(folder), reports, options.count)
        samples = Path(folder) / "samples"
        samples.mkdir()
        found = jobs(samples, reports)
        chosen = {name: job for name, job in found.items() if name in (options.only or found)}
        _import_all(chosen, Path(folder))
        wrong = 0
        print("| Job | Runs | Ended | Left aside | Wrong |\n|---|---|---|---|---|", flush=True)
        for name, job in chosen.items():
            place = Path(folder) / name.replace(" ", "_")
            place.mkdir()
            bench = Bench(job, place)
            wrong += _row(name, list(_WAYS[options.how](bench, options)))
    return 1 if wrong else 0


def _kills(bench: Bench, options: argparse.Namespace) -> Iterator[Trial]:
    generator = random.Random(options.seed)
    for _ in range(options.count):
        yield bench.trial(lambda: None, *drawn(generator, bench.undisturbed.took_s))


def _steps(bench: Bench, options: argparse.Namespace) -> Iterator[Trial]:
    step = 1
    while True:
        trial = bench.trial(killed_at(step))
        yield trial
        if trial.ended.code >= 0:
            return
        step += 1


def _room(bench: Bench, options: argparse.Namespace) -> Iterator[Trial]:
    for size_bytes in _ROOMS:
        yield bench.trial(with_room_for(size_bytes))


_WAYS: Final[dict[str, Trials]] = {"kills": _kills, "steps": _steps, "room": _room}


def _row(name: str, trials: Sequence[Trial]) -> int:
    """Print a row; what is wrong goes to stderr."""
    ended = Counter(trial.ended.code for trial in trials)
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(ended.items()))
    wrong = [trial for trial in trials if trial.wrong]
    print(
        f"| {name} | {len(trials)} | {codes} | {sum(t.left > 0 for t in trials)} | {len(wrong)} |", flush=True
    )
    for trial in wrong[:20]:
        print(f"{name}: {trial.ended} {trial.wrong}", file=sys.stderr, flush=True)
    return len(wrong)


def _import_all(chosen: dict[str, Job], folder: Path) -> None:
    """Run each job here once, so that what is forked later has nothing to import."""
    from diagnoser.cli import run

    for number, job in enumerate(chosen.values()):
        room = folder / f"import_{number}"
        put_inputs(job, room)
        os.chdir(room)
        silent = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for words in (*job.prepared, job.words):
            assert run(list(words)) == 0
        sys.stdout.flush()
        os.dup2(silent, 1)
    os.chdir(folder)
    gc.set_threshold(1_000_000)  # as diagnoser.__main__
    gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
