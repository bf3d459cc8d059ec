"""python -m bench.workload: record a small real MoE training step in a known state; needs PyTorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.workload.profiled import ABSTAINED, profiled, summary
from bench.workload.record import Request
from bench.workload.states import STATES
from bench.workload.workload import workload
from diagnoser.output.progress import progress_display
from heuristics.result.exits import Exit
from traces.errors import MoeDiagError, UsageError


def main(words: Sequence[str]) -> int:
    """Record as the command line says; gives the exit code, and says on stderr what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.workload", description=__doc__)
    parser.add_argument("--state", required=True, help=", ".join(STATES))
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="a name ending in .json.gz: one rank, by PyTorch's profiler")
    where.add_argument("--profile", type=Path, help="a new folder: Megatron's GPT by nsys, diagnosed")
    parser.add_argument("--ranks", type=int, default=2, help="with --profile")
    parser.add_argument("--steps", type=int, default=6, help="steps to record")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu, which records no kernels")
    parser.add_argument("--megatron", action="store_true", help="with --out: Megatron-Core's own MoE layer")
    parser.add_argument("--nsys", help="the nsys program to use")
    given = parser.parse_args(words)
    try:
        return _recorded(given)
    except MoeDiagError as error:
        print(f"workload: {error}", file=sys.stderr)
        return int(Exit.USAGE if isinstance(error, UsageError) else Exit.INPUT)


def _recorded(given: argparse.Namespace) -> int:
    if given.out is not None:
        how = {"step_count": given.steps, "device": given.device, "megatron": given.megatron}
        print(workload(given.state, given.out, **how))
        return int(Exit.DONE)
    request = Request(given.state, given.device, given.steps, megatron=True)
    with progress_display() as progress:
        code = profiled(request, given.profile, rank_count=given.ranks, nsys=given.nsys, progress=progress)
    print(summary(given.profile, code))
    if code == ABSTAINED:
        print((given.profile / "analysis.txt").read_text(encoding="utf-8"), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
