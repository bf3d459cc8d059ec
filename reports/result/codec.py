"""A typed result as a JSON document and back: the one codec of both.

In memory a value that could not be told is `Missing`, and `missing` holds only gaps that are no
value of its fields. In the document such a value is null, and `missing` has an entry for it. Lists
inside a list are one path, with `[*]`, and so is every list of a comparison.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import astuple, force_setattr
from msgspec.structs import replace as with_fields

from traces.errors import NotAResult
from traces.missing import Missing
from traces.patterns import compiled

Document = dict[str, Any]
R = TypeVar("R", bound=Struct)
_PLAIN: Final = frozenset({int, float, str, bool})
_PART: Final = compiled(r"([^.\[\]]+)|\[(\d{1,9}|\*)\]")
_PLACE: Final = compiled(r"\[\d+\]")
_PATH: Final = compiled(r" - at `\$\.?([^`]*)`")
_FOREIGN: Final = compiled(r"(?s)Invalid enum value .*")
"""Ends with what stands in the file, which may be anything."""
_ABSENT: Final = compiled(r"Object missing required field `([^`]*)`")


def encode(result: Struct) -> Document:
    document, several = _whole(result)
    if getattr(result, "one_path_a_list", False):
        several = dict.fromkeys(replace(one, path=_PLACE.sub("[*]", one.path)) for one in several)
    document["missing"] = list(map(asdict, several))
    return document


def gaps(result: Struct) -> Iterable[Missing]:
    """Every gap of a result: those of its values, each at its path, then those of no value."""
    return _whole(result)[1]


def _whole(result: Struct) -> tuple[Document, Iterable[Missing]]:
    """The document, without its gaps, and these."""
    found, noted = dict[Missing, None](), result.missing  # type: ignore[attr-defined]  # of whole results
    return _lower(with_fields(result, missing=()), "", found), (*found, *noted)


def lowered(section: Struct) -> Document:
    found: Document = _lower(section, "*", {})
    return found


def _lower(value: Any, path: str, found: dict[Missing, None]) -> Any:
    """A value as JSON has it; gaps on the way go to `found`, each once and in their order."""
    if isinstance(value, Missing):
        found[Missing(path, value.reason, value.cure)] = None
        return None
    if isinstance(value, Struct):
        values = zip(value.__struct_encode_fields__, astuple(value), strict=True)
        return _lowered_each(values, path and f"{path}.", found)
    if isinstance(value, list | tuple):
        if {*map(type, value)} <= _PLAIN:  # the columns of a timeline: long, and without gaps
            return list(value)
        lowered, has_paths, inner = [], _has_paths(value), "[" in path
        for number, one in enumerate(value):
            place = "*" if inner else number
            own = f"[{place}]" if has_paths else ""
            lowered.append(_lower(one, path + own, found))
        return lowered
    if isinstance(value, Mapping):
        return _lowered_each(value.items(), f"{path}.", found)
    return value


def _lowered_each(
    told: Iterable[tuple[str, Any]], start: str, found: dict[Missing, None]
) -> Document:
    lowered = {}
    for key, one in told:
        if one is not UNSET:
            lowered[key] = one if type(one) in _PLAIN else _lower(one, start + key, found)
    return lowered


def _has_paths(several: Iterable[object]) -> bool:
    """Whether what stands in a list has places of its own."""
    return any(isinstance(one, Struct | Mapping | tuple) for one in several)


def decode(document: object, kind: type[R]) -> R:
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
    noted = []
    for gap in gaps:
        parts = [found[1] or found[2] for found in _PART.finditer(gap.path)]
        if not _raise(result, parts, Missing("", gap.reason, gap.cure)):
            noted.append(gap)
    force_setattr(result, "missing", tuple(noted))
    return result


def _wrong(said: str) -> str:
    found = _PATH.search(said)
    place = found[1] if found else ""
    what = _FOREIGN.sub("none of the known words", _PATH.sub("", said))
    if absent := _ABSENT.fullmatch(what):
        return f"{place}.{absent[1]} is missing".removeprefix(".")
    return f"{place or 'the document'}: {what}"


def _raise(value: Any, parts: Sequence[str], gap: Missing) -> bool:
    """Put a gap where the document has null; False where it is of no value."""
    if not parts:  # a path of nothing
        return False
    first, rest = parts[0], parts[1:]
    if isinstance(value, tuple | list):
        is_raised = False
        if _has_paths(value):
            for place, one in enumerate(value):
                if first in ("*", str(place)):
                    is_raised |= _raise(one, rest, gap)
        return is_raised
    if isinstance(value, Mapping):
        return first in value and _raise(value[first], rest, gap)
    if not isinstance(value, Struct) or first not in value.__struct_encode_fields__:
        return False
    name = value.__struct_fields__[value.__struct_encode_fields__.index(first)]
    one = getattr(value, name)
    if rest:
        return _raise(one, rest, gap)
    if isinstance(one, tuple) and None in one:
        force_setattr(value, name, tuple(gap if part is None else part for part in one))
    elif one is None:
        force_setattr(value, name, gap)
    else:
        return False
    return True
