"""Mutated inputs for every reader: python -m bench.fuzz [--target T] [--seconds N] [--seed S] [--inputs N].

What fails is kept as a file, which `--replay FILE` reads again. Exit code 1: something failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import SystemRandom

from bench.fuzz.run import Found, a_folder, attack, read_as, smallest
from bench.fuzz.targets import TARGETS


def main() -> int:
    """Attack the targets one after the other -> exit code."""
    given = _given()
    if given.replay:
        return _replayed(given.replay)
    seed = SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    failed = 0
    for name in given.target or TARGETS:
        found = attack(TARGETS[name], seed, given.inputs, given.seconds, given.jobs)
        rate = found.inputs / max(found.seconds, 1e-9)
        print(
            f"{name}: {found.inputs:,} inputs in {found.seconds:.0f} s ({rate:,.0f}/s), seed {seed}, "
            f"{found.count} problems of {len(found.problems)} kinds",
            flush=True,
        )
        failed += found.count
        _keep(found, given.keep)
    return 1 if failed else 0


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="one of them; else all")
    parser.add_argument("--seconds", type=float, default=60.0, help="at most, for each target")
    parser.add_argument("--inputs", type=int, default=1 << 40, help="at most, for each target")
    parser.add_argument("--seed", type=int, help="another one each time, where none is given")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep", type=Path, default=Path(".fuzz"), help="where failing inputs go")
    parser.add_argument("--replay", type=Path, help="a failing input that was kept")
    return parser.parse_args()


def _keep(found: Found, folder: Path) -> None:
    """Store of each kind of problem the smallest input, as TARGET.SEED.NUMBER.FILE-NAME."""
    for said, number in found.problems.items():
        name, content = smallest(TARGETS[found.target], found.seed, number, said)
        folder.mkdir(exist_ok=True)
        path = folder / f"{found.target}.{found.seed}.{number}.{name}"
        path.write_bytes(content)
        print(f"  {path}: {said}", flush=True)


def _replayed(path: Path) -> int:
    target, _, _, name = path.name.split(".", 3)
    with a_folder() as folder:
        said = read_as(TARGETS[target], name, path.read_bytes(), folder, deep=True)
    print(f"{path}: {said or 'no problem any more'}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
