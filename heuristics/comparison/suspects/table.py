"""The rules of `causes.toml`, and what can move which rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Any

from heuristics.comparison.suspects.causes import Row, expanded, families, named, table
from heuristics.comparison.suspects.direction import crossed
from heuristics.comparison.suspects.evidence import EVIDENCE
from heuristics.comparison.suspects.rule import Rule, any_way, way_of
from traces.names.kernels import compute_classes


@dataclass(frozen=True, slots=True)
class Mover:
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


@cache
def movers() -> tuple[Mover, ...]:
    """What can move which rows by itself, where no fix of the catalogue has it."""
    sources = table()["sources"]
    return tuple(
        Mover(
            what=tuple(row["what"]),
            source=sources.get(row["source"], row["source"]),
            slower=named(*row.get("slower", ())),
            faster=named(*row.get("faster", ())),
            either=named(*row.get("either", ())),
            is_broad=row.get("is_broad", False),
        )
        for row in table()["movers"]
    )


@cache
def rules() -> tuple[Rule, ...]:
    """All causes, in the order of the table."""
    return tuple(
        rule for each, rows in groupby(table()["cause"], _each) for rule in _expand(each, tuple(rows))
    )


def _each(row: Row) -> str:
    return str(row.get("each", ""))


def _expand(each: str, rows: Sequence[Row]) -> Iterator[Rule]:
    """One rule a row; one a family and row, or one a row and class, where it is for each of them."""
    if each == "family":
        for key, family in families().items():
            yield from (_rule(row, key, family) for row in rows)
        return
    for row in rows:
        for key in compute_classes() if each == "class" else ("",):
            yield _rule(row, key, {})


def _rule(row: Row, key: str, family: Row) -> Rule:
    texts = {"next": table()["families_next"], **family, "key": key}
    sets = {**table()["sets"], **{f"family_{name}": one for name, one in family.items()}}

    def text(name: str) -> str:
        return str(row[name]).format_map(texts)

    def listed(name: str) -> tuple[str, ...]:
        return tuple(one.replace("{key}", key) for one in expanded(row.get(name, ()), sets))

    other: dict[str, Any] = {name: row[name] for name in ("needs", "at_most", "at_least") if name in row}
    if "observed" in row:
        name, *of = row["observed"]
        other["observed"] = partial(EVIDENCE[name], *((key,) if key else ()), *of)
    releases = row.get("crossed")
    return Rule(
        id=text("id"),
        title=text("title"),
        mirrored=text("mirrored"),
        next=text("next"),
        source=row["source"],
        slower=listed("slower"),
        faster=listed("faster"),
        either=listed("either"),
        changed=listed("changed"),
        went=crossed(**releases) if releases else way_of(row["way"]) if "way" in row else any_way,
        **other,
    )
