"""A row of the table of movers."""

from __future__ import annotations

from dataclasses import dataclass


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
