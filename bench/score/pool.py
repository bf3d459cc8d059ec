"""Cases scored by several processes, with how many are done on stderr."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

C = TypeVar("C")
R = TypeVar("R")


def scored(score: Callable[[C], R], cases: Sequence[C], jobs: int, what: str = "runs") -> list[R]:
    """The result of each case, in order. `what`: what a case is, in the plural."""
    results = []
    with multiprocessing.Pool(jobs) as pool:
        for result in pool.imap(score, cases):
            results.append(result)
            print(f"\r{len(results)} of {len(cases)} {what}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results


def seeds(text: str) -> range:
    """Seeds as a command line gives them, `FIRST:END` or one."""
    first, _, end = text.partition(":")
    return range(int(first), int(end or int(first) + 1))
