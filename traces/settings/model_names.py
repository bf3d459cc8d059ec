"""Models by the names that people write: the shape of each, and the nearest names of one that is
unknown.
"""

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Final

from msgspec import Struct

from traces.errors import UsageError
from traces.nearest import nearest
from traces.patterns import compiled
from traces.settings.harness_recipes import models
from traces.settings.settings import Settings, settings
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

_BETWEEN: Final = compiled(r"[-_/ ]+")
_SAYS_NOTHING: Final = compiled(
    r"base|exp|instruct|chat|it|hf|thinking|think|zero|original|bf16|fp8|fp4|nvfp4|mxfp4|\d{4,9}|v\d{1,9}(\.\d{1,9})?|16e|128e|671b"
)


class _Names(TableRow):
    names: dict[str, Texts]
    not_counted: dict[str, str]


class NamedModel(Struct, frozen=True):
    """A model of the tables: `id` of its recipe, `name` as its publisher writes it, and the
    settings it has.
    """

    id: str
    name: str
    settings: Settings


@cache
def _names() -> _Names:
    return read_table("traces.settings", "model_names.toml", _Names)


def model_names() -> Texts:
    """The name of every model, as its publisher writes it."""
    return tuple(model_names_by_id().values())


def name_of(id: str) -> str:
    """The publisher's name of a recipe's model; the recipe's own where the table has none."""
    return model_names_by_id().get(id, id)


def model_names_by_id() -> Mapping[str, str]:
    """The publisher's name of each recipe's model."""
    return {id: names[0] for id, names in _names().names.items()}


@cache
def named_models() -> tuple[NamedModel, ...]:
    """Every model that has a name, in the order of the table."""
    return tuple(map(_model, _names().names))


def model_named(text: str) -> NamedModel:
    """The model of a name, in any case, with or without its organisation.

    Raises `UsageError` with the nearest names for one that is unknown, or whose layers are not
    counted.
    """
    words = _words(text)
    for name, why in _names().not_counted.items():
        if _is_of(words, _words(name)):
            raise UsageError(
                f"{text}: {why}, so no layout can be held against memory. Give another model."
            )
    for id, names in _names().names.items():
        if any(_is_of(words, _words(name)) for name in (id, *names)):
            return _model(id)
    joined = "".join(words)
    every = {_joined(name): name for name in chain.from_iterable(_names().names.values())}
    close = nearest(joined, every)
    alike = {every[close]: None} if close else {}
    for key, name in every.items():
        if key[:4] == joined[:4]:
            alike[name] = None
    meant = list(alike)[:4]
    cure = f"Did you mean {' or '.join(meant)}? Known are" if meant else "Known are"
    raise UsageError(
        f"{text!r} is no file, and no model that we know. {cure} {', '.join(model_names())}; or "
        f"give a "
        "configuration."
    )


def _model(id: str) -> NamedModel:
    counted, name = dict(models()[id]), name_of(id)
    counted.pop("experimental_attention_variant", None)  # for its place among published layouts
    return NamedModel(id, name, settings(counted, f"the model {name}"))


@cache
def _words(text: str) -> Texts:
    """The words of a name; an organisation before a stroke is none."""
    return tuple(filter(None, _BETWEEN.split(text.rpartition("/")[2].lower())))


def _joined(text: str) -> str:
    return "".join(_words(text))


def _is_of(words: Texts, known: Texts) -> bool:
    """Whether a name is the known one, or that and words which say nothing of the shape."""
    left = "".join(known)
    for place, word in enumerate(words, 1):
        if not left.startswith(word):
            return False
        left = left.removeprefix(word)
        if not left:
            return all(map(_SAYS_NOTHING.fullmatch, words[place:]))
    return False
