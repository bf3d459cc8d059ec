"""The rules that order layouts, and what each weighs."""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from traces.toml_tables import read_keyed


class LayoutRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `ranking.toml`, which says what its fields are."""

    id: str
    weight: float
    rule: str
    source: str
    text: str


@cache
def rules() -> Mapping[str, LayoutRule]:
    return read_keyed("heuristics.layouts", "ranking.toml", LayoutRule)
