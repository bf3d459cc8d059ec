"""The language of conditions: `ep_overlap and torch < '2.6.0'`, parsed once, with three values.

A name is a knob's id, a fact or a field of one (`recompute_guide.granularity`), a limit (`WALL`, or
with its file `guides.parallel.LONG`), a row of `recipes.X`, `active.X` (a field of what runs as far
as is known), `observed.X` (of what a trace shows, as it stands), `run.X` or `config.X` (a question
to the configuration). None is unknown: it goes through `and`, `or`, `not` and comparisons, so that
an unknown name never breaks a rule; `unknown` says so, `known(a, b)` tells whether all are known,
`first(a, b)` is the first that is, `where(a)` what set a knob, `line('a')` where a log has a line.
A knob that is null is off, is `None` (`mtp_num_layers is None`), and in an order (`mtp_num_layers >
1`) neither above nor below any number.

Tables ask a configuration, or by facts of its own what has one: a run, a case, a difference of two.
Facts that conditions and texts can say are rows of `heuristics/facts/facts.toml`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from importlib import import_module
from operator import attrgetter
from typing import Any, Final

from packaging.version import Version

from heuristics.config.logic import each_once, negated
from heuristics.config.observed import Observed
from heuristics.config.view import Config
from heuristics.facts import configuration, groups, stages
from heuristics.facts.dictionary import DICTIONARY, FactHolder, Says, answer, enter, written_facts
from heuristics.recipes import RECIPES
from heuristics.rules.terms import (
    Evaluated,
    Term,
    all_known,
    both,
    first_of,
    joined,
    knobs_first,
    named_in,
    once,
    tells,
    unknown_in,
)
from heuristics.rules.values import ARITHMETIC, NULL, comparison, computed, meet
from heuristics.run.run import Run
from heuristics.words import spelled
from traces.limits import Limit
from traces.patterns import Match, compiled
from traces.settings.knobs import knobs
from traces.settings.settings import truth
from traces.spelling import chosen
from traces.texts import Texts
from traces.toml_tables import Readers

ROOMS: Final = (configuration, groups, stages)
"""Where facts of a configuration stand; those of a view stand before the language that asks it."""
_FIELD: Final = compiled(r"\{(.+?)\}")


class Condition:
    """A condition, ready to be asked. No dataclass: a table's reader makes it of its text."""

    def __init__(self, text: str, tree: ast.expr, term: Term) -> None:
        self.text, self.term = text, term
        self.named = once(named_in(term))
        """Knobs and facts in it, in its order."""
        self.words = frozenset(
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
        )
        """Texts that it compares with."""

    def holds(self, of: FactHolder) -> bool | None:
        """Whether it holds; None where unknown."""
        if self.text not in of.held:
            of.held[self.text] = truth(self.term.of(of))
        return of.held[self.text]

    def unknown(self, of: FactHolder) -> tuple[Term, ...]:
        """The unknown names on which it rests where it is unknown itself, in its order."""
        return once(unknown_in(self.term, of))

    def asks(self, config: Config) -> Texts:
        """Unknown knobs, then options, that would decide it."""
        return knobs_first(name for term in self.unknown(config) for name in tells(term, config))

    @property
    def names(self) -> Texts:
        """Names of knobs and facts in it."""
        return tuple(term.name for term in self.named)

    @cached_property
    def knobs(self) -> Texts:
        """Knobs that it speaks of, those of its facts included."""
        return each_once(knob for term in self.named for knob in term.knobs)

    def figures(self, config: Config) -> str:
        """What is known of its names, in words: `EP 1, PyTorch not known`; no text but known
        ones.
        """
        return ", ".join(f"{term.spoken} {self._shown(term, config)}" for term in self.named)

    def _shown(self, term: Term, config: Config) -> str:
        name, value = term.name, term.of(config)
        if value is None:
            return "not known"
        if value is NULL or value == "":
            return "not set"
        if isinstance(value, bool):
            if value:
                return "on"
            return "off"
        known = {*self.words, *(knobs()[name].choices if name in knobs() else ())}
        if isinstance(value, tuple):
            return ", ".join(str(word) for word in value if word in known) or (
                "others" if value else "none"
            )
        if not isinstance(value, str) or value in known:
            return str(value)
        return "another value"


def _itself(subject: Any) -> Any:
    return subject


class Language:
    """What conditions of tables that ask one view may name: facts of the dictionary, and knobs.

    `ways`: where what is asked leads to something else that has facts, by its type. With a way to a
    configuration knobs are asked there, and questions to it.
    """

    def __init__(self, view: type, ways: Mapping[type, str] | None = None) -> None:
        self._ways: dict[type, Callable[[Any], Any]] = {view: _itself}
        for other, path in (ways or {}).items():
            self._ways[other] = attrgetter(path)
        self._conditions = dict[str, Condition]()
        self.readers: Readers = {Condition: self.condition, Version: Version}
        """For tables whose rows have conditions and releases."""
        for name, cases in written_facts().get(view.__name__, {}).items():
            first = cases[0]
            enter(name, partial(self._answer, cases), view, *first.knobs, option=first.option)

    def condition(self, text: str) -> Condition:
        """A condition by its text. ValueError: a name that nobody knows, or a form that is none of
        ours.
        """
        if text not in self._conditions:
            try:
                tree = ast.parse(text, mode="eval").body
                self._conditions[text] = Condition(text, tree, self._compiled(tree))
            except (ValueError, SyntaxError, KeyError) as error:
                raise ValueError(f"{text}: {error}") from None
        return self._conditions[text]

    def named(self, name: str) -> Term:
        """A name as a term: None where unknown, NULL where it is null. ValueError: no such name
        here.
        """
        room, _, own = name.rpartition(".")
        number = RECIPES[own] if room == "recipes" else _limit(name)
        if number:
            return Term(lambda c: number.value)
        whole, _, field = name.partition(".")
        if name in DICTIONARY:
            whole, field = name, ""
        fact = DICTIONARY.get(whole)
        view: type = Run if name.startswith(("observed.", "run.")) else Config
        if fact:
            view = fact.view
        of = partial(_field, partial(answer, whole), field) if fact else _question(name)
        if view not in self._ways:
            raise ValueError(f"{name} is no fact of what is asked")
        way = self._ways[view]
        return Term(of if way is _itself else lambda asked: of(way(asked)), name=name, fact=fact)

    def _answer(self, cases: tuple[Says, ...], of: Any) -> object:
        """What a fact of the table says; None where none of its cases holds."""
        for case in cases:
            if not case.when or self.condition(case.when).holds(of):
                if case.text:
                    return self.filled(case.text, of)
                return self.condition(case.value).term.of(of)
        return None

    def filled(self, text: str, of: Any, words: Mapping[str, str] | None = None) -> str:
        """A text with the values of the parts of conditions that it has in braces.

        `words`: texts by their names in braces.
        """

        def value(field: Match) -> str:
            if words and field[1] in words:
                return self.filled(words[field[1]], of, words)
            if limit := _limit(field[1]):
                if limit.unit.startswith("fraction"):
                    return chosen(limit.value)
                return f"{limit.value:g}"
            value_ = self.condition(field[1]).term.of(of)
            if value_ is None:
                return "?"
            if isinstance(value_, tuple):
                return ", ".join(value_)
            return spelled(field[1], value_)

        return _FIELD.sub(value, text)

    def _compiled(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=value):
                constant = NULL if value is None else value
                return Term(lambda c: constant)
            case ast.Tuple(elts=elements) | ast.Set(elts=elements):
                values = tuple(self._compiled(element).of(None) for element in elements)
                return Term(lambda c: frozenset(values) if isinstance(node, ast.Set) else values)
            case ast.Name(id="unknown"):
                return Term(lambda c: None)
            case ast.Name() | ast.Attribute():
                return self.named(ast.unparse(node))
            case ast.Call(func=ast.Name(id="first" | "known" as asked), args=names, keywords=[]):
                terms = tuple(map(self._compiled, names))
                return Term(partial(first_of if asked == "first" else all_known, terms), terms)
            case ast.Call(func=ast.Name(id="where"), args=[knob], keywords=[]):
                name = ast.unparse(knob)
                return Term(lambda c: self._ways[Config](c).where(name))
            case ast.Call(
                func=ast.Name(id="line"), args=[ast.Constant(value=str() as id)], keywords=[]
            ):
                return Term(lambda c: c.line_of(id))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                term = self._compiled(operand)
                return Term(lambda c: negated(truth(term.of(c))), (term,))
            case ast.BoolOp(op=op, values=values_):
                terms = tuple(map(self._compiled, values_))
                return Term(joined(terms, isinstance(op, ast.Or)), terms)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                first = self._listed(left) if isinstance(right, ast.Set) else self._compiled(left)
                is_list = isinstance(op, ast.In | ast.NotIn)
                second = self._listed(right) if is_list else self._compiled(right)
                return both(first, second, comparison(type(op)))
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return both(self._listed(left), self._listed(right), meet)
            case ast.BinOp(left=left, op=op, right=right):
                compute = partial(computed, ARITHMETIC[type(op)])
                return both(self._compiled(left), self._compiled(right), compute)
        raise ValueError(f"{ast.unparse(node)} is no part of a condition")

    def _listed(self, node: ast.expr) -> Term:
        """A knob as its list of names; other terms as they are."""
        term = self._compiled(node)
        if term.name not in knobs():
            return term
        return Term(lambda c: self._ways[Config](c).names(term.name), name=term.name)


CONFIGURED: Final = Language(Config)
"""Conditions that tables ask of a configuration."""
RUNS: Final = Language(Run, {Config: "config"})
"""Conditions that tables ask of a run: of guides, fixes, clues and the workflow."""
condition: Final = CONFIGURED.condition
READERS: Final = CONFIGURED.readers


def _question(name: str) -> Evaluated:
    """A name that is no fact. ValueError: nor a field of what runs, a question to a configuration,
    a knob.
    """
    home, _, own = name.partition(".")
    if home == "env":
        return lambda config: config.env(own)
    if home == "run":
        return partial(_field, _itself, own)
    if home in ("active", "config", "observed"):
        if not hasattr(Config if home == "config" else Observed, own):
            raise ValueError(f"{name} is no question")
        question = attrgetter(own if home == "config" else name)
        if home == "observed":
            return question
        return lambda config: None if (value := question(config)) == "unknown" else value
    if name not in knobs():
        raise ValueError(f"{name} is neither a knob nor a fact")
    return partial(_value, name)


def _value(name: str, config: Config) -> object:
    value = config.value(name)
    if value is None and config.known(name):
        return NULL
    return value


def _field(of: Evaluated, path: str, subject: Any) -> object:
    """A field of a value, or what a mapping has of that name, by its path; None where what has it
    is.
    """
    value = of(subject)
    for name in filter(None, path.split(".")):
        if isinstance(value, Mapping):
            value = value.get(name)
        else:
            value = getattr(value, name) if value is not None else None
    return value


def _limit(name: str) -> Limit | None:
    """`fixes.graphs.ROOM`, of a file of opinions, or `MOST`, a word that many share; None of other
    names.
    """
    room, _, own = name.rpartition(".")
    if room == "env" or not own.isidentifier() or not own.isupper():
        return None
    limit: Limit = getattr(import_module(f"heuristics.{room}" if room else "traces.limits"), own)
    return limit
