"""What a tool takes, by its parameters: the schema that a program reads, and a mistake in one
line.
"""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Struct

from traces.errors import UsageError
from traces.patterns import compiled
from traces.spelling import printable

Tool = Callable[..., str]

_EXPECTED: Final = compiled(
    r"Expected `(?P<wanted>[a-z |]{1,80})`, got `(?P<got>[a-z]{1,40})` - at "
    r"`\$\.(?P<name>[a-z_]{1,40})(?P<inner>[^`]{0,80})`"
)
_LACKS: Final = compiled(r"Object missing required field `([a-z_]{1,40})`")
_KINDS: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a text",
}
"""Kinds of JSON's values in words, by what msgspec calls them."""


@cache
def _taken_by(tool: Tool) -> type[Struct]:
    hints = get_type_hints(tool)
    fields = [
        (name, hints[name])
        if parameter.default is Parameter.empty
        else (name, hints[name], parameter.default)
        for name, parameter in signature(tool).parameters.items()
    ]
    return msgspec.defstruct(tool.__name__, fields, kw_only=True)


def schema_of(tool: Tool) -> dict[str, Any]:
    """The JSON schema of what a tool takes."""
    _, parts = msgspec.json.schema_components([_taken_by(tool)])
    return {**parts[tool.__name__], "additionalProperties": False}


def arguments_of(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as the tool takes it. Raises `UsageError` for what it does not take."""
    kind = _taken_by(tool)
    takes = f"It takes {', '.join(kind.__struct_fields__)}."
    if unknown := [name for name in given if name not in kind.__struct_fields__]:
        raise UsageError(f"{tool.__name__} takes no {printable(unknown[0], 40)!r}. {takes}")
    try:
        return msgspec.structs.asdict(msgspec.convert(given, kind, strict=False))
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"{tool.__name__}: {_wrong(str(error))}. {takes}") from None


def _wrong(message: str) -> str:
    if lacks := _LACKS.match(message):
        return f"{lacks[1]} is missing"
    if mismatch := _EXPECTED.match(message):
        wanted = " or ".join(
            _KINDS[kind] for kind in mismatch["wanted"].split(" | ") if kind != "null"
        )
        what = f"each value of {mismatch['name']}" if mismatch["inner"] else mismatch["name"]
        return f"{what} must be {wanted}, not {_KINDS[mismatch['got']]}"
    if "out of range" in message:
        return "a number is too large"
    return "it is no such value"
