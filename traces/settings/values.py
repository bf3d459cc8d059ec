"""What is written in a file -> the value of a knob: type, choices, patterns of layers, layouts of
stages.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby
from typing import Final

from traces.nearest import nearest_names
from traces.patterns import compiled
from traces.settings.expressions import LARGEST, LONGEST, pattern_of
from traces.settings.knobs import Kind, Knob
from traces.settings.precision import DTYPES
from traces.settings.settings import Scalar, Value, entries_of

LETTERS: Final = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}

_REPEATED: Final = (compiled(r"\(([^()]+)\)\*(\d{1,4})"), compiled(r"([^()])\*(\d{1,4})"))


def unrolled(layout: str) -> str | None:
    """The layout with its repetitions written out; None where it is none."""
    text = layout.strip().strip("'\"").replace(",", "")
    for pattern in _REPEATED:
        length = len(text)
        for match in pattern.finditer(text):
            length += len(match[1]) * int(match[2])
        if length > LONGEST.value:
            return None
        text = pattern.sub(lambda match: match[1] * int(match[2]), text)
    if compiled(r"[EtmL|]+").fullmatch(text):
        return text
    return None


def letters_of(counts: Sequence[int], mtp_count: int) -> str:
    """Written short, as Megatron-Core reads it: Et*4|(t*4|)*14tmL."""
    first, *middle, last = counts
    written = f"E{_run_of_layers(first)}|"
    for count, alike in groupby(middle):
        times = len(list(alike))
        stage = f"{_run_of_layers(count)}|"
        written += f"({stage})*{times}" if times > 1 else stage
    return written + _run_of_layers(last) + "m" * mtp_count + "L"


def _run_of_layers(count: int) -> str:
    if count > 2:
        return f"t*{count}"
    return "t" * count


def stage_count(layout: str) -> int | None:
    """Pipeline stages times virtual stages of a layout; None where it is none."""
    text = unrolled(layout)
    if text is None:
        return None
    return text.count("|") + 1


def layout_of(stages: Sequence[Sequence[str]]) -> str | None:
    """Megatron-Bridge's list of stages in letters; None where a layer is not one of the four
    kinds.
    """
    if not LETTERS.keys() >= {*chain.from_iterable(stages)}:
        return None
    return "|".join("".join(LETTERS[layer] for layer in stage) for stage in stages)


def fullest_rank(layout: str, ranks: int) -> int | None:
    """Layers of the rank that computes most, MTP and loss counted as layers; None where it is no
    layout.
    """
    text = unrolled(layout)
    if text is None:
        return None
    stages = [len(stage.replace("E", "")) for stage in text.split("|")]
    return max(sum(stages[rank::ranks]) for rank in range(ranks))


Raw = bool | int | float | str | None | list["Raw"] | dict[str, "Raw"]
"""What a YAML or JSON file holds at a key."""


class NotAValue(ValueError):
    """The knob does not take this. The message says what it takes, never what was there."""


GIVEN: Final = "given"
"""The value of a knob of which only counts that there is one."""

NULLS: Final = frozenset({"null", "None", "~", ""})
TRUE: Final = frozenset({"true", "yes", "on", "1"})
FALSE: Final = frozenset({"false", "no", "off", "0"})
_ENUM: Final = compiled(r"<\w+\.(\w+): [^>]*>")
_TAKES: Final[dict[Kind, str]] = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a word",
    "list": "a list of words",
    "int|list": "a whole number, or a list of 0 and 1",
    "float|list": "a number, or a list of them",
    "str|list": "a word, or a list of them",
    "given": "a value",
}


def value_of(knob: Knob, raw: Raw) -> Value:
    """A knob's value.

    Raises:
        NotAValue: the knob does not take it.
    """
    if knob.kind == "given":
        if raw in (None, [], *NULLS):
            return None
        return GIVEN
    raw = _plain(raw)
    is_null = isinstance(raw, str) and raw.strip() in NULLS and knob.kind != "str"
    if raw is None or is_null or raw in ("null", "None", "~"):
        return None
    try:
        value = _of_kind(knob.kind, raw)
    except (ValueError, OverflowError, TypeError) as error:
        raise NotAValue(f"takes {_TAKES[knob.kind]}") from error
    return _chosen(knob, value)


def _plain(raw: Raw) -> Raw:
    """A dumped enum or type as its name: Bridge writes them as what would build them again."""
    if isinstance(raw, dict):
        target = raw.get("_target_")
        if isinstance(name := raw.get("_name_"), str):
            return name
        if isinstance(target, str) and target in DTYPES:
            return DTYPES[target]
        if isinstance(target, str) and (raw.get("_call_") is False or target.startswith("torch.")):
            return target.rpartition(".")[2]  # a function, by its name
        raise NotAValue("takes a plain value")
    if isinstance(raw, list):
        return list(map(_plain, raw))
    if isinstance(raw, str):
        return DTYPES.get(raw, raw)
    return raw


def _of_kind(kind: Kind, raw: Raw) -> Value:
    if kind == "list":
        return tuple(map(_scalar, _entries(raw)))
    single, _, several = kind.partition("|")
    read = _READERS[single]
    if not several:
        return read(_only(raw))
    entries = _layers(raw) if single == "int" else _entries(raw)
    values = tuple(map(read, map(_only, entries)))
    is_listed = isinstance(raw, list) or (isinstance(raw, str) and "[" in raw)
    if len(values) == 1 and not (single == "int" and is_listed):
        (value,) = values
        return value
    return values


def _only(raw: Raw) -> Raw:
    if not isinstance(raw, list):
        return raw
    (only,) = raw  # of several it is a ValueError
    return only


def _bool(raw: Raw) -> bool:
    word = str(raw).strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError
    return word in TRUE


def _int(raw: Raw) -> int:
    if isinstance(raw, str):
        if (
            not compiled(r"[+-]?\d(_?\d)*").fullmatch(text := raw.strip())
            or abs(float(text)) > LARGEST.value
        ):
            raise ValueError
        return int(text)
    if not (type(raw) is int or type(raw) is float) or raw != int(raw) or abs(raw) > LARGEST.value:
        raise ValueError
    return int(raw)


def _float(raw: Raw) -> float:
    number = float(str(raw))  # a switch and a list have the text of no number
    if not math.isfinite(number):
        raise ValueError
    return number


def _str(raw: Raw) -> str:
    if isinstance(raw, list | dict) or raw is None:
        raise ValueError
    text = str(raw).lower() if isinstance(raw, bool) else str(raw).strip()
    if match := _ENUM.fullmatch(text):
        return match[1]
    return text


_READERS: Final[Mapping[str, Callable[[Raw], Scalar]]] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": _str,
}


def _scalar(raw: Raw) -> Scalar:
    if isinstance(raw, bool | int | float):
        return raw
    text = _str(raw)
    if compiled(r"[+-]?\d{1,18}").fullmatch(text):
        return int(text)
    return text


def _entries(raw: Raw) -> list[Raw]:
    """Entries of a list, of `[a, b]`, of Python's `['a', 'b']` or `(a, b)`, or of `a,b`."""
    entries = list[Raw]()
    if isinstance(raw, list):
        for entry in raw:
            entries += _entries(entry) if isinstance(entry, str) else [entry]
        return entries
    if not isinstance(raw, str):
        return [raw]
    text = raw.strip()
    if text[:1] + text[-1:] in ("[]", "()"):
        text = text[1:-1]
    for part in compiled(r"(:\s)|,|\s+").sub(lambda match: match[1] or ",", text).split(","):
        if word := part.strip().strip("'\""):
            entries.append(word)
    return entries


def _layers(raw: Raw) -> list[Raw]:
    """One entry a layer, from a list or from Megatron-LM's `([0]*3+[1]*58)`; a single number stays
    one.
    """
    if isinstance(raw, str) and "[" in raw:
        return list[Raw](pattern_of(raw))
    if isinstance(raw, list):
        return raw
    return [raw]


def _chosen(knob: Knob, value: Value) -> Value:
    for word in entries_of(value) if knob.choices else ():
        if word not in knob.choices:
            near = nearest_names(str(word), knob.choices, 3)
            raise NotAValue(f"takes {', '.join(dict.fromkeys((*near, *knob.choices)))}")
    return value
