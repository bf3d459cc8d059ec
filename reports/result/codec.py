"""A typed result as a JSON document and back: the one codec of both.

In memory a value that could not be told is `Missing`, and `missing` holds only gaps that are no
value of its fields. In the document such a value is null, and `missing` has an entry for it. Lists
inside a list are one path, with `[*]`, and so is every list of a comparison.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import astuple, force_setattr
from msgspec.structs import replace as with_fields

from heuristics.result.texts import AnyStruct
from traces.errors import NotAResult
from traces.missing import Missing
from traces.patterns import compiled

Document = dict[str, Any]
_PLAIN: Final = frozenset({int, float, str, bool})
_PART: Final = compiled(r"([^.\[\]]+)|\[(\d{1,9}|\*)\]")
_PLACE: Final = compiled(r"\[\d+\]")
_PATH: Final = compiled(r" - at `\$\.?([^`]*)`")
_FOREIGN: Final = compiled(r"(?s)Invalid enum value .*")
"""Ends with what stands in the file, which may be anything."""
_ABSENT: Final = compiled(r"Object missing required field `([^`]*)`")


def encode(result: Struct) -> Document:
    document, missing = _whole(result)
    if getattr(result, "one_path_a_list", False):
        missing = dict.fromkeys(replace(gap, path=_PLACE.sub("[*]", gap.path)) for gap in missing)
    document["missing"] = list(map(asdict, missing))
    return document


def gaps(result: Struct) -> Iterable[Missing]:
    """Every gap of a result: those of its values, each at its path, then those of no value."""
    return _whole(result)[1]


def _whole(result: Struct) -> tuple[Document, Iterable[Missing]]:
    """The document, without its gaps, and these."""
    missing, own_gaps = dict[Missing, None](), result.missing  # type: ignore[attr-defined]  # of whole results
    return _lower(with_fields(result, missing=()), "", missing), (*missing, *own_gaps)


def lowered(value: Any) -> Any:
    """A section, or a value of one, as JSON has it, without its gaps."""
    return _lower(value, "*", {})


def _lower(value: Any, path: str, missing: dict[Missing, None]) -> Any:
    """A value as JSON has it; gaps on the way go to `missing`, each once and in their order."""
    if isinstance(value, Missing):
        missing[Missing(path, value.reason, value.cure)] = None
        return None
    if isinstance(value, Struct):
        values = zip(value.__struct_encode_fields__, astuple(value), strict=True)
        return _lowered_each(values, path and f"{path}.", missing)
    if isinstance(value, list | tuple):
        if {*map(type, value)} <= _PLAIN:  # the columns of a timeline: long, and without gaps
            return list(value)
        lowered, has_paths, inner = [], _has_paths(value), "[" in path
        for number, part in enumerate(value):
            place = "*" if inner else number
            own = f"[{place}]" if has_paths else ""
            lowered.append(_lower(part, path + own, missing))
        return lowered
    if isinstance(value, Mapping):
        return _lowered_each(value.items(), f"{path}.", missing)
    return value


def _lowered_each(
    fields: Iterable[tuple[str, Any]], start: str, missing: dict[Missing, None]
) -> Document:
    lowered = {}
    for key, value in fields:
        if value is not UNSET:
            lowered[key] = value if type(value) in _PLAIN else _lower(value, start + key, missing)
    return lowered


def _has_paths(parts: Iterable[object]) -> bool:
    """Whether what stands in a list has places of its own."""
    return any(isinstance(part, Struct | Mapping | tuple) for part in parts)


def decode(document: object, kind: type[AnyStruct]) -> AnyStruct:
    """The typed result. Raises `NotAResult` for what does not keep the contract, naming the
    path.
    """
    try:
        result = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise NotAResult(_wrong(str(error))) from None
    except UnicodeEncodeError:
        raise NotAResult("half a character stands where a word of the contract is to be") from None
    gaps: tuple[Missing, ...] = result.missing  # type: ignore[attr-defined]  # of whole results
    unplaced = []
    for gap in gaps:
        parts = [match[1] or match[2] for match in _PART.finditer(gap.path)]
        if not _raise(result, parts, Missing("", gap.reason, gap.cure)):
            unplaced.append(gap)
    force_setattr(result, "missing", tuple(unplaced))
    return result


def _wrong(message: str) -> str:
    path_match = _PATH.search(message)
    place = path_match[1] if path_match else ""
    what = _FOREIGN.sub("none of the known words", _PATH.sub("", message))
    if absent := _ABSENT.fullmatch(what):
        return f"{place}.{absent[1]} is missing".removeprefix(".")
    return f"{place or 'the document'}: {what}"


def _raise(value: Any, parts: Sequence[str], gap: Missing) -> bool:
    """Put a gap where the document has null; False where it is of no value."""
    if not parts:  # a path of nothing
        return False
    first, below = parts[0], parts[1:]
    if isinstance(value, tuple | list):
        is_raised = False
        if _has_paths(value):
            for place, held in enumerate(value):
                if first in ("*", str(place)):
                    is_raised |= _raise(held, below, gap)
        return is_raised
    if isinstance(value, Mapping):
        return first in value and _raise(value[first], below, gap)
    if not isinstance(value, Struct) or first not in value.__struct_encode_fields__:
        return False
    name = value.__struct_fields__[value.__struct_encode_fields__.index(first)]
    held = getattr(value, name)
    if below:
        return _raise(held, below, gap)
    if isinstance(held, tuple) and None in held:
        force_setattr(value, name, tuple(gap if part is None else part for part in held))
    elif held is None:
        force_setattr(value, name, gap)
    else:
        return False
    return True
