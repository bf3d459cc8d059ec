"""What this release can say: the texts of its tables and of plug-ins, and those that stand in its
code.

A text has a gap where a figure or a name is filled in.
"""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import tomli
from msgspec import Struct
from msgspec.structs import astuple

from heuristics.config.about import OPTIONS
from heuristics.config.view import Config
from heuristics.facts.dictionary import DICTIONARY
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.incidents.incident import incidents
from heuristics.rules.rules import rules
from traces.patterns import compiled

GAP: Final = "\0"
"""Stands for what is filled in; no text has it."""
_LISTS: Final = ("said_in_code.txt", "said_before.txt")
"""Sentences of the code, and those of earlier releases that are said no more; `{}` is a gap."""
_OF_STEPS: Final = ("execute_context_N", "generation_N")
"""Pieces of the names that vLLM gives its passes, which stand for steps."""
_FIELD: Final = compiled(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|<schedule>")
_OF_ONE_FRAMEWORK: Final = compiled(r" \(Megatron-LM: [^()]*\)")
"""What is left out for the runs of others."""


def phrases() -> Iterator[str]:
    """Every text, with its gaps."""
    for text in map(_bare, _written()):
        yield text
        if (short := _OF_ONE_FRAMEWORK.sub("", text)) != text:
            yield short


def _bare(text: str) -> str:
    """With gaps for its fields, and without what joins it to another."""
    return _FIELD.sub(GAP, text).strip(";,: ").removeprefix("and ")


def _written() -> Iterator[str]:
    for package in ("traces", "heuristics"):
        for table in _tables(files(package)):
            yield from _texts(tomli.loads(table.read_text(encoding="utf-8")))
    # sources are spelled out in these, and plug-ins add some
    yield from _texts((*CATALOGUE.values(), *rules().values()))
    yield from (
        *OPTIONS,
        *_OF_STEPS,
        *(name for name, fact in DICTIONARY.items() if fact.view is Config),
    )
    for incident in incidents().values():  # names what of its condition is not known
        yield from incident.when.names
    for option in OPTIONS.values():
        yield from option.takes.split("|")
    for name in _LISTS:
        yield from (
            files("reports.result.voice").joinpath(name).read_text(encoding="utf-8").splitlines()
        )


def _tables(folder: Traversable) -> Iterator[Traversable]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _tables(entry)
        elif entry.name.endswith(".toml"):
            yield entry


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Struct):
        yield from _texts(astuple(value))
    elif isinstance(value, dict):
        yield from _texts((*value, *value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
