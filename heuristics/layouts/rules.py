"""The rules that order layouts, and what each weighs."""

from collections.abc import Mapping
from functools import cache

from traces.toml_tables import TableRow, read_keyed


class LayoutRule(TableRow):
    """A row of `ranking.toml`, which says what its fields are."""

    id: str
    weight: float
    rule: str
    source: str
    text: str


@cache
def rules() -> Mapping[str, LayoutRule]:
    return read_keyed("heuristics.layouts", "ranking.toml", LayoutRule)
