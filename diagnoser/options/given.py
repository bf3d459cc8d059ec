"""What a user says in words of his own: of a run what its trace cannot tell, a gate, what fixes
should gain.

`3%` of `--gate`; `com-3=6ms` or `com-3=5%` of `--expect`.
"""

import operator
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from heuristics.config.about import OPTIONS, option_of
from traces.errors import UsageError
from traces.limits import MOST_RANKS, Limit
from traces.nearest import nearest
from traces.patterns import compiled
from traces.spelling import printable
from traces.texts import Texts

if TYPE_CHECKING:
    from heuristics.comparison.expected import Prediction

_PERCENT: Final = compiled(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*")
_NUMBER: Final = compiled(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_EXPECTED: Final = compiled(
    r"\s*(?P<fix>[A-Za-z]+-[0-9]{1,4})\s*=\s*(?P<number>[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(?P<unit>us|ms|s|%)\s*"
)
KINDS: Final = {
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    list: "a list of NAME=VALUE",
}
"""What a field of the run may hold, in words."""
SYNONYMS: Final = {"gpus": "world_size"}
"""Other words for a field of the run, as another command calls it: `plan --gpus`."""
BY_OPTION: Final = {option_of(field)[2:].replace("-", "_"): field for field in OPTIONS}
"""Fields by the words of their options."""
WORDS: Final = SYNONYMS | BY_OPTION | dict(zip(OPTIONS, OPTIONS, strict=True))
"""Words of options and fields -> the field that they mean: `gpu_model` is `gpu`."""
_NS: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def near_word(word: str, known: Iterable[str]) -> str:
    """The known word that is meant: itself, what begins with it, or the nearest; empty where none
    is near.
    """
    known = [*known]
    if word in known:
        return word
    for known_word in known:
        if known_word.startswith(f"{word}_"):
            return known_word
    return nearest(word, known)


def _variables(given: object) -> Texts:
    """Variables as `NAME=VALUE`. Raises `UsageError` for what is none, or is read by nothing
    here.
    """
    from traces.settings.knobs import knobs

    if isinstance(given, Mapping):
        given = [f"{name}={value}" for name, value in given.items()]
    listed = [*map(str, given)] if isinstance(given, list | tuple) else [str(given)]
    known = [knob.removeprefix("env.") for knob in knobs() if knob.startswith("env.")]
    for variable in listed:
        name, equals, _ = variable.partition("=")
        if not equals:
            raise UsageError(f"--env {name!r} has no value. Give NAME=VALUE.")
        if name not in known:
            near = nearest(name, known)
            cure = f"Give {near}." if near else f"There are {', '.join(known)}."
            raise UsageError(f"--env {name!r}: no variable that any rule here reads. {cure}")
    return tuple(listed)


def _gpu(name: str) -> str:
    from traces.names.gpus import product_named, products

    if product := product_named(name):
        return product.name
    near = nearest(name, products())
    cure = f"Did you mean {near}? There are" if near else "There are"
    raise UsageError(
        f"{option_of('gpu')} {name!r} is no GPU that we know. {cure} {', '.join(products())}."
    )


def size_of(flag: str, size: int, most: Limit = MOST_RANKS) -> int:
    """A size that was given. Raises `UsageError` for what is none."""
    if 1 <= size <= most.value:
        return size
    # of more digits Python itself may refuse to write
    shown = f" {size}" if abs(size) < 1 << 60 else ""
    more = "or more" if size < 1 else f"to {int(most.value):,}"
    raise UsageError(f"{flag}{shown} is no size. Give 1 {more}.")


def _of_its_kind(field: str, value: object) -> object:
    """A value as its field has it, None where it is unknown. Raises `UsageError` for another
    kind.
    """
    if field not in OPTIONS:
        near = near_word(str(field), WORDS)
        cure = f"The nearest is {WORDS[near]}." if near else f"There are {', '.join(OPTIONS)}."
        raise UsageError(f"nothing is known of {printable(str(field), 60)!r}. {cure}")
    kind = OPTIONS[field].kind
    if (
        value is None
        or kind is list
        or (field == "graph_modules" and isinstance(value, list | tuple))
    ):
        return value
    if kind is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise UsageError(f"{option_of(field)} must be {KINDS[kind]}.")
    return value


def _that_can_be(field: str, value: Any) -> object:
    """A value of its kind, as `Given` has it. Raises `UsageError` for one that cannot be."""
    takes, flag = OPTIONS[field].takes, option_of(field)
    words = takes.split("|")
    if len(words) > 1 and value not in words:
        raise UsageError(f"{flag} {value!r} is not known. Give {' or '.join(words)}.")
    if takes == "V" and not compiled(r"\d+\.\d+").search(value):
        raise UsageError(f"{flag} {value!r} is no version. Give one such as 0.16.1.")
    if takes == "N":
        return size_of(flag, value)
    if field == "graph_modules":
        return tuple(value.replace(",", " ").split() if isinstance(value, str) else map(str, value))
    made = {"gpu": _gpu, "env": _variables}
    if field in made:
        return made[field](value)
    return value


def given_from(about: Mapping[str, object]) -> Any:
    """A `Given`. Raises `UsageError` for a field or a value that cannot be."""
    from heuristics.config.about import Given

    kinds = {field: _of_its_kind(field, value) for field, value in about.items()}
    facts = {
        field: _that_can_be(field, value) for field, value in kinds.items() if value is not None
    }
    return Given(**facts)  # type: ignore[arg-type]


def gate_frac(text: str) -> float:
    """A typed `3%` -> 0.03. The sign is part of it: 3 and 0.03 could be meant either way.

    Raises `UsageError` for anything else, with what to type.
    """
    if match := _PERCENT.fullmatch(text):
        return float(Decimal(match[1]) / 100)
    if _NUMBER.fullmatch(text):
        as_part = f"{100 * Decimal(text):f}".rstrip("0").rstrip(".")
        meant = f"{text}%" if Decimal(text) >= 1 else f"{as_part}% or --gate {text}%"
        raise UsageError(f"--gate {text} is given without its sign. Type --gate {meant}")
    raise UsageError(f"--gate {text!r} is no percentage. Type one such as --gate 3%")


def predictions(texts: Iterable[str]) -> "tuple[Prediction, ...]":
    """Predictions of a step's gain, one a fix. Raises `UsageError` with what to type."""
    from heuristics.comparison.expected import Prediction
    from heuristics.fixes.catalogue import CATALOGUE

    by_fix = {}
    for text in texts:
        match = _EXPECTED.fullmatch(text)
        if not match:
            raise UsageError(
                f"--expect {text!r} is no fix with its gain. Type one such as --expect com-3=6ms"
            )
        fix, number = match["fix"].upper(), Decimal(match["number"])
        if fix not in CATALOGUE:
            near = nearest(fix, CATALOGUE) or next(iter(CATALOGUE))
            raise UsageError(
                f"--expect {text}: there is no fix {fix}. Type one such as {near}: moe-diag "
                f"explain {near}"
            )
        if fix in by_fix:
            raise UsageError(f"--expect names {fix} twice. Give one gain a fix")
        if match["unit"] == "%":
            by_fix[fix] = Prediction(fix, None, float(number / 100))
        else:
            by_fix[fix] = Prediction(fix, round(number * _NS[match["unit"]]), None)
    return tuple(by_fix.values())
