"""python -m bench.mutate: draw small wrong lines, have the tests judge each, print a figure a folder.

Results go to .mutate/results.jsonl, survivors to .mutate/survivors.patch. What each test runs is measured
once (some 20 minutes on two cores), and with --look again of the test files that changed since; to measure
all of them again, remove .mutate/looked.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from bench.mutate import python_changes, row_changes
from bench.mutate.judge import Judge, Verdict, together
from bench.mutate.mutant import Mutant
from bench.mutate.seen import PRODUCT, Seen, collected, look
from bench.mutate.siblings import Siblings, siblings_of
from bench.mutate.tree import copied
from tests.places import ROOT

FOLDERS: Final = (
    *(
        "traces/account",
        "traces/steps",
        "heuristics/walls",
        "traces/ranks",
        "traces/resolve",
        "traces/measure",
    ),
    *("heuristics/comparison", "traces/settings", "heuristics/rules", "traces/replay", "heuristics/plan"),
)
KEPT: Final = ROOT / ".mutate"
EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def main(words: Sequence[str] | None = None) -> None:
    """Judge as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutate", description=__doc__)
    parser.add_argument("--folders", nargs="+", default=FOLDERS, help="what is changed, below the root")
    parser.add_argument("--count", type=int, default=60, help="mutants of each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--look", action="store_true", help="measure again what tests run that changed")
    parser.add_argument("--alone", action="store_true", help="leave out the last judgement by all tests")
    options = parser.parse_args(words)
    KEPT.mkdir(exist_ok=True)
    trees = [copied(KEPT / f"tree{number}") for number in range(options.jobs)]
    seen_in = KEPT / "looked"
    there = collected(trees[0])
    seen = Seen(seen_in, there)
    if options.look or seen.new == there:
        look(trees[0], seen_in / str(time.time_ns()), options.jobs, seen.changed(trees[0]))
        seen = Seen(seen_in, there)
    drawn = [one for folder in options.folders for one in draw(folder, options.count, options.seed)]
    equivalent = _equivalent()
    asked = [one for one in drawn if _said(one) not in equivalent]
    judges = [Judge(tree, seen) for tree in trees]
    (KEPT / "survivors.patch").unlink(missing_ok=True)
    verdicts = _alone(asked, judges, options.seed)
    if not options.alone:
        open_ones = [one.mutant for one in verdicts if not one.killed]
        for judge in judges:
            judge.close()
        rest = together(Judge(trees[0], seen), open_ones, options.jobs)
        (KEPT / "survivors.patch").unlink(missing_ok=True)
        for verdict in rest:
            _keep(verdict, options.seed)
        verdicts = [one for one in verdicts if one.killed] + rest
    print(_table(options.folders, drawn, verdicts))


def draw(folder: str, count: int, seed: int) -> list[Mutant]:
    """So many mutants of a folder, one kind after the other, so that rare kinds are seen as well."""
    by_kind: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in _all(folder):
        by_kind[mutant.kind].append(mutant)
    chance = random.Random(f"{folder} {seed}")
    for mutants in by_kind.values():
        chance.shuffle(mutants)
    drawn: list[Mutant] = []
    while len(drawn) < count and any(by_kind.values()):
        for kind in sorted(by_kind):
            while by_kind[kind]:
                mutant = by_kind[kind].pop()
                if _runs(mutant):
                    drawn.append(mutant)
                    break
    return drawn[:count]


def _all(folder: str) -> Iterator[Mutant]:
    siblings = _siblings()
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield from python_changes.changes(
            str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), siblings
        )
    for path in sorted((ROOT / folder).rglob("*.toml")):
        yield from row_changes.changes(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))


@cache
def _siblings() -> Siblings:
    files = [path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))]
    return siblings_of([ast.parse(path.read_text(encoding="utf-8")) for path in files])


def _runs(mutant: Mutant) -> bool:
    """Whether the changed text can be read at all."""
    text = mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    try:
        tomllib.loads(text) if mutant.file.endswith(".toml") else compile(text, mutant.file, "exec")
    except (SyntaxError, tomllib.TOMLDecodeError):
        return False
    return True


def _alone(asked: Sequence[Mutant], judges: Sequence[Judge], seed: int) -> list[Verdict]:
    free: SimpleQueue[Judge] = SimpleQueue()
    for judge in judges:
        free.put(judge)

    def judged(mutant: Mutant) -> Verdict:
        judge = free.get()
        try:
            verdict = judge.judge(mutant)
        finally:
            free.put(judge)
        _keep(verdict, seed)
        said = f"killed by {verdict.by}" if verdict.killed else "survives"
        print(f"{mutant.key} {mutant.file}:{mutant.line} {mutant.kind}: {said}", file=sys.stderr, flush=True)
        return verdict

    with ThreadPoolExecutor(len(judges)) as pool:
        return list(pool.map(judged, asked))


def _said(mutant: Mutant) -> tuple[str, str, str]:
    """A mutant by its lines before and after, which outlive a change elsewhere in the file."""
    lines = [line for line in mutant.patch().splitlines()[2:] if line[:1] in "+-"]
    before = " ".join(line[1:].strip() for line in lines if line.startswith("-"))
    after = " ".join(line[1:].strip() for line in lines if line.startswith("+"))
    return mutant.file, before, after


def _equivalent() -> set[tuple[str, str, str]]:
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {(row["file"], row["before"], row["after"]) for row in rows}


def _keep(verdict: Verdict, seed: int) -> None:
    """One line as soon as it is known, so that a run that is ended loses nothing; the last line counts."""
    one = verdict.mutant
    row = {"seed": seed, "key": one.key, **asdict(one), "killed": verdict.killed, "by": verdict.by}
    with (KEPT / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    if not verdict.killed:
        with (KEPT / "survivors.patch").open("a", encoding="utf-8") as file:
            file.write(f"# {one.file}:{one.line} {one.kind} {one.key}\n{one.patch()}\n")


def _table(folders: Sequence[str], drawn: Sequence[Mutant], verdicts: Sequence[Verdict]) -> str:
    lines = [
        "| folder | drawn | equivalent | killed | survive | killed of the rest |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for folder in folders:
        mine = [one for one in verdicts if one.mutant.file.startswith(f"{folder}/")]
        all_ = sum(one.file.startswith(f"{folder}/") for one in drawn)
        killed = sum(one.killed for one in mine)
        share = f"{killed / len(mine):.1%}" if mine else "–"
        lines.append(
            f"| {folder} | {all_} | {all_ - len(mine)} | {killed} | {len(mine) - killed} | {share} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
