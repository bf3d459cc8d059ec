"""Each mutant by the tests that could see it, then its folder's; what none kills, together by all tests."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.mutate.mutant import Mutant
from bench.mutate.seen import Seen, product_tests, run_tests, told_in
from bench.mutate.tree import environment, mutated
from bench.mutate.watchers import watchers
from tests.places import ROOT

FIRST_S: Final = 3.0
"""Seconds of tests that are asked first: most mutants die there."""
SECOND_S: Final = 40.0
"""Seconds of tests that are asked of one mutant in all before it goes to all tests with the others."""
FIRST_FILES: Final = 4
UNCHANGED: Final = "tests/traces/test_intervals.py"
"""Tests that are quick and must pass before any mutant is judged."""
PATIENCE: Final = 5.0
"""A mutant that takes so many times the tests' own time, and START_S, is endless."""
START_S: Final = 40.0


@dataclass(frozen=True)
class Verdict:
    """Whether tests see a mutant: killed or survived, and which test said so first."""

    mutant: Mutant
    killed: bool
    by: str


class Judge:
    """One copy of the repository and the process that runs tests in it."""

    def __init__(self, tree: Path, seen: Seen) -> None:
        self.tree, self.seen = tree, seen
        self._alone = dict[str, bool]()
        words = (str(ROOT / ".venv/bin/python"), "-m", "bench.mutate.worker")
        self._worker = subprocess.Popen(
            words,
            cwd=tree,
            env=environment(tree),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        by = self.killer([UNCHANGED])
        if by:
            raise RuntimeError(f"no test can be judged: {by} fails in an unchanged copy")

    def judge(self, mutant: Mutant) -> Verdict:
        """By the tests that run its lines, as many as their time allows, and by all of its folder.

        A line whose answer is kept runs in the first test that asks, so that others see it too.
        """
        asked = watchers(mutant, self.seen)
        first, second = self._portions(asked)
        own = f"tests/{'/'.join(mutant.file.split('/')[:2])}/"
        folder = {name for name in self.seen.took_s if name.startswith(own)} - {*first, *second}
        for portion in (first, second, sorted(folder - self.seen.failed)):
            by = self._killer_of(mutant, portion)
            if by:
                return Verdict(mutant, killed=True, by=by)
        return Verdict(mutant, killed=False, by="")

    def _killer_of(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """The first test that the mutant fails; one that fails alone without it tells nothing."""
        left = [*tests]
        while left:
            with mutated(self.tree, [mutant]):
                by = self.killer(left)
            if by not in left or self._passes(by):
                return by
            left.remove(by)
        return ""

    def _passes(self, test: str) -> bool:
        if test not in self._alone:
            self._alone[test] = not self.killer([test])
        return self._alone[test]

    def killer(self, tests: Sequence[str]) -> str:
        """The first of the tests that fails in the copy as it stands, or nothing."""
        limit_s = START_S + PATIENCE * sum(self.seen.took_s.get(name, 1.0) for name in tests)
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"tests": list(tests), "limit_s": limit_s}) + "\n")
        self._worker.stdin.flush()
        told = json.loads(self._worker.stdout.readline())
        return "" if told["outcome"] == "passed" else str(told["by"] or told["outcome"])

    def close(self) -> None:
        """End the process."""
        self._worker.kill()
        self._worker.wait()

    def _portions(self, asked: list[str]) -> tuple[list[str], list[str]]:
        first: list[str] = []
        files: set[str] = set()
        spent_s = 0.0
        rest: list[str] = []
        for name in asked:
            file, took_s = name.partition("::")[0], self.seen.took_s[name]
            is_first = spent_s + took_s <= FIRST_S and (file in files or len(files) < FIRST_FILES)
            (first if is_first else rest).append(name)
            if is_first:
                files.add(file)
                spent_s += took_s
        second = []
        for name in rest:
            if spent_s + self.seen.took_s[name] <= SECOND_S:
                spent_s += self.seen.took_s[name]
                second.append(name)
        return first, second


def together(judge: Judge, mutants: Sequence[Mutant], jobs: int) -> list[Verdict]:
    """What all tests of the product say to mutants that no test of their own sees.

    All stand in one copy at once. Where tests fail, each mutant is asked of these alone, and those that are
    left stand together again, until no test fails.
    """
    verdicts: list[Verdict] = []
    left = list(mutants)
    while left:
        apart = _not_overlapping(left)
        with mutated(judge.tree, apart):
            failing = _failing(judge, jobs)
        killed = []
        for mutant in apart if failing else ():
            with mutated(judge.tree, [mutant]):
                by = judge.killer(_likeliest(mutant, failing, judge.seen))
            if by:
                killed.append(Verdict(mutant, killed=True, by=by))
        verdicts += killed
        gone = {one.mutant for one in killed}
        if not gone:
            verdicts += [Verdict(mutant, killed=False, by="") for mutant in apart]
            gone = set(apart)
        left = [mutant for mutant in left if mutant not in gone]
    return verdicts


def _likeliest(mutant: Mutant, failing: set[str], seen: Seen) -> list[str]:
    """The failing tests, those that run the mutant's file before others."""
    near = seen.of_lines(mutant.file, None)
    return sorted(failing, key=lambda name: (name not in near, seen.took_s.get(name, 1.0)))


def _failing(judge: Judge, jobs: int) -> set[str]:
    """Tests that fail in the copy as it stands and do not in an unchanged one."""
    with tempfile.TemporaryDirectory() as folder:
        run_tests(judge.tree, Path(folder), jobs, product_tests())
        files = told_in(Path(folder))
    return {name for one in files for name in one["failed"]} - judge.seen.failed


def _not_overlapping(mutants: Sequence[Mutant]) -> list[Mutant]:
    chosen: list[Mutant] = []
    for mutant in mutants:
        same = [one for one in chosen if one.file == mutant.file]
        if all(one.end <= mutant.start or mutant.end <= one.start for one in same):
            chosen.append(mutant)
    return chosen
