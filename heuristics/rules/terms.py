"""Parts of conditions: what they are where a value is unknown, what they name, what tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from heuristics.config.about import not_given
from heuristics.config.logic import each_once
from heuristics.config.view import Config
from heuristics.facts.dictionary import Fact, FactHolder
from heuristics.rules.values import NULL, Compute
from heuristics.words import say
from traces.settings.settings import truth
from traces.texts import Texts

Evaluated = Callable[[Any], object]
"""The value of a part of a condition for what is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A part of a condition. `of`: its value. `name`: of a knob or `fact`. `parts`: within it."""

    of: Evaluated
    parts: tuple[Term, ...] = ()
    name: str = ""
    fact: Fact | None = None

    @property
    def spoken(self) -> str:
        if self.fact:
            return say(f"facts.{self.name}")
        return self.name

    @property
    def knobs(self) -> Texts:
        """Itself, or those that its fact is made of."""
        if self.fact:
            return self.fact.knobs
        return (self.name,)


Terms = tuple[Term, ...]


def once(terms: Iterable[Term]) -> Terms:
    """Each name once, in its order."""
    return tuple({term.name: term for term in terms}.values())


def knobs_first(names: Iterable[str]) -> Texts:
    """Unknown knobs, then options, each once."""
    return each_once(sorted(names, key=lambda name: name.startswith("--")))


def unknown_in(term: Term, of: FactHolder) -> Iterator[Term]:
    if term.of(of) is None:
        if term.name:
            yield term
        for part in term.parts:
            yield from unknown_in(part, of)


def tells(term: Term, config: Config) -> Texts:
    """Unknown knobs and options that would tell a name; its option again where all are known."""
    unknown = tuple(knob for knob in term.knobs if not config.known(knob))
    option = term.fact.option if term.fact else ""
    if left := not_given(option, config.given):
        return (*unknown, left)
    if unknown or not option:
        return unknown
    return (option,)


def named_in(term: Term) -> Iterator[Term]:
    if term.name:
        yield term
    for part in term.parts:
        yield from named_in(part)


def joined(terms: Terms, decides: bool) -> Evaluated:
    """`or` is decided by what is true, `and` by what is not."""

    def of(subject: Any) -> bool | None:
        result: bool | None = not decides
        for term in terms:
            value = truth(term.of(subject))
            if value is decides:
                return decides
            if value is None:
                result = None
        return result

    return of


def both(first: Term, second: Term, compute: Compute) -> Term:
    """What is computed of two values, unknown where one is."""

    def of(subject: Any) -> object:
        first_value, second_value = first.of(subject), second.of(subject)
        if first_value is None or second_value is None:
            return None
        return compute(first_value, second_value)

    return Term(of, (first, second))


def all_known(terms: Terms, subject: Any) -> bool:
    return all(term.of(subject) is not None for term in terms)


def first_of(terms: Terms, subject: Any) -> object:
    """The first that is known; null where none is and one is null."""
    null = None
    for term in terms:
        value = term.of(subject)
        if value is NULL:
            null = value
        elif value is not None:
            return value
    return null
