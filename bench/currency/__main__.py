"""`make currency`: what of a new Megatron-Core or Megatron-Bridge our tables do not know."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.currency.found import Fact, facts
from bench.currency.read import FILE, TEXTS, Name, releases, remember, texts_read, told
from bench.currency.source import NotARelease, Source, opened
from bench.currency.tables import core_of, knows, read_in
from traces.settings.knobs import Release


def unknown(found: Iterable[Fact], core: Release, is_core: bool, file: Path = FILE) -> Iterator[Fact]:
    """Facts that the tables do not hold so, and texts that nobody read."""
    for fact in dict.fromkeys(found):
        known = knows(fact, core, is_core)
        if known is False or (fact.kind in TEXTS and not {fact, told(fact)} & texts_read(file)):
            yield fact


def gone(found: Iterable[Fact], name: Name, core: Release, file: Path = FILE) -> Iterator[Fact]:
    """Fields and flags of the last release read before it that it lacks, and the tables still have."""
    before = [one for one in releases(file) if one.package == name.package and one.release < name.release]
    if before:
        there = {(fact.kind, fact.place) for fact in found}
        shown = {"field", "flag"} & {kind for kind, _ in there}  # a wheel of Bridge has no scripts
        kept = releases(file)[max(before)]
        lost = sorted(one for one in kept if one.kind in shown and one[:2] not in there)
        yield from (one for one in lost if knows(one, core, name.package == "core"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.currency", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="WHEEL", help="a wheel, or a checkout")
    parser.add_argument("--read", action="store_true", help="its refusals and presets were read: keep it")
    asked = parser.parse_args()
    count = 0
    for path in asked.paths:
        try:
            source = opened(path)
        except NotARelease as error:
            print(error, file=sys.stderr)
            return 2
        count += _report(source, asked.read)
    return 1 if count else 0


def _report(source: Source, is_read: bool) -> int:
    name, core, is_core = Name(source.package, source.release), core_of(source), source.package == "core"
    found = [*dict.fromkeys(facts(source, read_in()))]
    if is_read:
        remember(name, (one for one in found if one.kind in TEXTS or knows(one, core, is_core) is not None))
    left = [*unknown(found, core, is_core)]
    for fact in left:
        print(f"{name}: {fact}")
    for fact in gone(found, name, core):
        print(f"{name}: no more: {fact}")
    print(f"{name}: {len(found):,} facts, {len(left):,} that the tables do not know")
    return len(left)


if __name__ == "__main__":
    sys.exit(main())
