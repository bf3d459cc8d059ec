"""Which texts of a configuration may be shown: a path or somebody's name is withheld."""

from dataclasses import asdict
from functools import cache
from typing import Any, Final

from heuristics.config.about import OPTIONS, Given
from traces.patterns import compiled
from traces.settings.harness_recipes import RECIPE, is_known_recipe
from traces.settings.knobs import STAGE_LAYOUT, knobs
from traces.settings.names import known_words
from traces.settings.settings import Value
from traces.settings.values import stage_count

_PLAIN: Final = compiled(r"[0-9]+(\.[0-9a-z]+)*|[a-z0-9_]{1,24}|[A-Z]{1,4}[0-9]{2,4}[A-Z]{0,2}")
"""A version, a word of the frameworks, a GPU: nothing that could be a path or somebody's name."""


def shown(knob: str, value: Value, redact: bool) -> Any:
    """A value as it may be shown: redacted, None for a text that is none of the frameworks' own."""
    if isinstance(value, tuple):
        return [shown(knob, part, redact) for part in value]
    if not isinstance(value, str) or not redact:
        return value
    if (
        (knob in knobs() and value in knobs()[knob].choices)
        or (knob == STAGE_LAYOUT and stage_count(value) is not None)
        or (knob == RECIPE and is_known_recipe(value))
        or value in known_words()
        or value.isdecimal()
    ):
        return value
    return None


def is_withheld(value: Value, seen: Any) -> bool:
    """Whether a value as it is shown, or a part of it, is a text that is left out."""
    return (isinstance(seen, list) and None in seen) or (seen is None and value is not None)


def is_public(text: str) -> bool:
    """Whether a value of a setting or an option, whichever it is of, is no path and nobody's
    name.
    """
    name, mark, value = text.partition("=")
    if mark and f"env.{name}" in knobs():
        return is_public(value)
    return (
        _PLAIN.fullmatch(text) is not None or text in _every_word() or stage_count(text) is not None
    )


@cache
def _every_word() -> frozenset[str]:
    """Every text that a knob may have and that may be shown."""
    words = {*known_words(), "expandable_segments:True,graph_capture_record_stream_reuse:True"}
    for knob in knobs().values():
        words |= {*knob.choices, *knob.harness_choices}
    return frozenset(words)


def given(run: Given, redact: bool = True) -> dict[str, Any]:
    """What is known of the run by option, file or log, by field of `Given`.

    `redact`: texts only as we know them.
    """
    known = {}
    for key, value in asdict(run).items():
        value = list(value) if isinstance(value, tuple) else value
        if value is not None and key != "guidance" and (not redact or _is_plain(key, value)):
            known[key] = value
    return known


def _is_plain(field: str, value: Any) -> bool:
    if field == "env":
        return all(map(_is_plain_variable, value))
    if field == "pp_layout":
        return stage_count(value) is not None
    texts = value if isinstance(value, list) else [value]
    return all(not isinstance(text, str) or _PLAIN.fullmatch(text) for text in texts)


def _is_plain_variable(variable: object) -> bool:
    name, _, text = str(variable).partition("=")
    return shown(f"env.{name}", text, redact=True) is not None


def shown_of(redact: bool, name: str, value: Value) -> Any:
    """What a document may have of a setting, or of a field of `Given`: None for a text that is
    withheld.
    """
    if name not in OPTIONS:
        return shown(name, value, redact)
    if not redact or _is_plain(name, value):
        return value
    return None
