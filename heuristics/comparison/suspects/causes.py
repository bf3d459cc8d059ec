"""The table of causes, `causes.toml`, as it stands, and the sets of names in it."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from traces.names.kernels import compute_classes

Row = Mapping[str, Any]


@cache
def table() -> Row:
    """The file; its set `classes` is all classes of compute."""
    text = files("heuristics.comparison.suspects").joinpath("causes.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    found["sets"]["classes"] = [f"compute.{class_}" for class_ in compute_classes()]
    return found


@cache
def named(*names: str) -> tuple[str, ...]:
    """A list in which `@name` stands for a set of the table."""
    return expanded(names, table()["sets"])


@cache
def families() -> Mapping[str, Row]:
    """Families of communication: their words, kinds and settings."""
    found: Mapping[str, Row] = table()["families"]
    return found


def expanded(listed: Sequence[str], sets: Row) -> tuple[str, ...]:
    """Names, with those of a set where its `@name` stands; none of a set that is not there."""
    return tuple(
        name
        for one in listed
        for name in (expanded(sets.get(one[1:], ()), sets) if one.startswith("@") else (one,))
    )
