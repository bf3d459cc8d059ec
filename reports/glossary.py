"""The words of a result that are no measures: findings and states. Their home is `glossary.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def glossary() -> Mapping[str, Mapping[str, str]]:
    """Findings and words of a result, by what they are, each with its meaning."""
    text = files("reports").joinpath("glossary.toml").read_text(encoding="utf-8")
    read: Mapping[str, Mapping[str, str]] = tomllib.loads(text)
    return read
