"""The rules of `causes.toml`, and what can move which rows."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct

from heuristics.comparison.suspects.causes import expanded, table
from heuristics.comparison.suspects.direction import numbers, way
from heuristics.comparison.suspects.facts import VIEWED
from heuristics.result.compared import ComparedChange
from heuristics.result.judged import Level
from heuristics.rules.condition import Condition
from traces.names.kernels import compute_classes
from traces.toml_tables import read_rows


class Mover(Struct, frozen=True, forbid_unknown_fields=True):
    """What can move rows: `what` are patterns of changed things, all others patterns of rows.

    More of it makes `slower` longer and `faster` shorter, less of it the reverse; `either` moves both ways.
    `is_broad`: it can move nearly everything, so that the rows say little of it.
    """

    what: tuple[str, ...]
    source: str
    slower: tuple[str, ...] = ()
    faster: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    is_broad: bool = False


class Crossed(Struct, frozen=True, forbid_unknown_fields=True):
    """Releases: from below `since`, not below `at_least`, to `since` or above, below `until`."""

    since: str
    at_least: str = "0"
    until: str = "9999"

    def by(self, change: ComparedChange) -> bool:
        base, new = numbers(change.base), numbers(change.new)
        if base is None or new is None:
            return False
        low, border, high = (numbers(one) or () for one in (self.at_least, self.since, self.until))
        return low <= base < border <= new < high


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cause that comes up on the new side; where it went away there, `mirrored` is its title.

    `slower`, `faster`, `either`: patterns of the rows that it makes longer, shorter, or either. `observed`:
    what else a trace must show: ruled out where it does not hold; `signs`: how that is worded, each with its
    own condition if it has one. `changed`: patterns of changed things that are the cause, one of which went
    `way`, or across the releases `crossed`. `needs`: the evidence without which it is no suspect. `at_most`,
    `at_least`: between which its confidence lies.
    """

    id: str
    title: str
    mirrored: str
    next: str
    source: str
    slower: tuple[str, ...] = ()
    faster: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    observed: Condition | None = None
    signs: tuple[str | tuple[Condition, str], ...] = ()
    changed: tuple[str, ...] = ()
    way: Literal["more", "less"] | None = None
    crossed: Crossed | None = None
    needs: Literal["observed", "changed", "any"] = "any"
    at_most: Level = "high"
    at_least: Level = "low"

    def went(self, change: ComparedChange) -> bool:
        """Whether a thing changed the way that brings the cause; also where that is not known."""
        if self.crossed:
            return self.crossed.by(change)
        return self.way is None or way(change) in (0, 1 if self.way == "more" else -1)


class Causes(Struct, frozen=True):
    """The table, each row written out."""

    movers: tuple[Mover, ...]
    rules: tuple[Rule, ...]


@cache
def causes() -> Causes:
    """What can move which rows by itself, where no fix of the catalogue has it, and the causes, in order."""
    sources = table()["sources"]
    movers = (expanded(row, {}, "") for row in table()["movers"])
    rows: dict[str, Any] = {
        "movers": [{**row, "source": sources.get(row["source"], row["source"])} for row in movers],
        "rules": [*_rules()],
    }
    return read_rows(rows, Causes, "heuristics/comparison/suspects/causes.toml", VIEWED.readers)


def _rules() -> Iterator[dict[str, Any]]:
    written = [{"id": id_, **row} for id_, row in table()["causes"].items()]
    for each, several in groupby(written, lambda row: row.pop("each", "")):
        rows = [*several]
        if each == "family":
            for key, family in table()["families"].items():
                yield from (expanded(row, family, key) for row in rows)
        else:
            for row in rows:
                yield from (expanded(row, {}, key) for key in (compute_classes() if each else ("",)))
