"""Which releases were read before, each with its facts; of texts a hash alone."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from bench.currency.found import Fact
from traces.settings.knobs import Release

FILE: Final = Path(__file__).with_name("read.tsv.gz")
TEXTS: Final = ("refusal", "preset")
"""Kinds of facts that no table holds: somebody has to read them."""


class Name(NamedTuple):
    """A package and its release."""

    package: str
    release: Release

    def __str__(self) -> str:
        return f"{self.package} {'.'.join(map(str, self.release))}"


def told(fact: Fact) -> Fact:
    """A fact as it may be kept: of a text of others its hash."""
    if fact.kind != "refusal":
        return fact
    return fact._replace(detail=hashlib.sha256(fact.detail.encode()).hexdigest()[:8])


@cache
def releases(file: Path = FILE) -> Mapping[Name, frozenset[Fact]]:
    """Facts of every release that was read."""
    found: dict[Name, set[Fact]] = {}
    lines = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines() if file.exists() else []
    for line in lines:
        names, *fact = line.split("\t")
        for name in names.split(", "):
            package, _, number = name.partition(" ")
            found.setdefault(Name(package, Release(map(int, number.split(".")))), set()).add(Fact(*fact))
    return {name: frozenset(several) for name, several in found.items()}


@cache
def texts_read(file: Path = FILE) -> frozenset[Fact]:
    """Refusals and presets that somebody read, in whichever release."""
    return frozenset(one for several in releases(file).values() for one in several if one.kind in TEXTS)


def remember(name: Name, facts: Iterable[Fact], file: Path = FILE) -> None:
    """Add a release, or put it in its own place."""
    kept = {**releases(file), name: frozenset(map(told, facts))}
    holders: dict[Fact, list[str]] = {}
    for one in sorted(kept):
        for fact in kept[one]:
            holders.setdefault(fact, []).append(str(one))
    lines = sorted("\t".join((", ".join(names), *fact)) for fact, names in holders.items())
    file.write_bytes(gzip.compress("\n".join(lines).encode("utf-8"), mtime=0))
    releases.cache_clear()
    texts_read.cache_clear()
