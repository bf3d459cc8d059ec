"""The language of conditions: `ep_overlap and torch < '2.6.0'`, parsed once, evaluated with three values.

A name is a knob's id or a fact. None is unknown: it goes through `and`, `or`, `not` and comparisons, so that
an unknown name never breaks a rule. A knob that is null is off, is `None` (`mtp_num_layers is None`), and in
an order (`mtp_num_layers > 1`) neither above nor below any number.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from packaging.version import Version

from heuristics.config.facts import FACTS, Fact
from heuristics.config.view import Config
from heuristics.rules.hatch import HATCH
from traces.settings.knobs import knobs
from traces.settings.settings import OFF

Evaluated = Callable[[Config], object]


class _Null:
    """A knob that is said to be null."""

    def __bool__(self) -> bool:
        return False


NULL: Final = _Null()
NAMES: Final[Mapping[str, Fact]] = {**FACTS, **HATCH}
_ORDERS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[Any, Any], object]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a condition. `of`: its value. `name`: of a knob or fact. `parts`: what it is made of."""

    of: Evaluated
    parts: tuple[Term, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, ready to be asked of a configuration.

    `names`: knobs and facts in it, in its order. `words`: texts that it compares with.
    """

    text: str
    term: Term
    names: tuple[str, ...]
    words: frozenset[object] = frozenset()

    def holds(self, config: Config) -> bool | None:
        """Whether it holds; None where unknown."""
        if self.text not in config.held:
            config.held[self.text] = _truth(self.term.of(config))
        return config.held[self.text]

    def asks(self, config: Config) -> tuple[str, ...]:
        """Unknown knobs, then options, that would decide it."""
        unknown = tuple(dict.fromkeys(_unknown(self.term, config)))
        asked = [one for name in unknown for one in _tells(name, config)]
        return tuple(dict.fromkeys(sorted(asked, key=lambda one: one.startswith("--"))))

    @property
    def knobs(self) -> tuple[str, ...]:
        """Knobs that it speaks of, those of its facts included."""
        return _knobs(self.names)

    def figures(self, config: Config) -> str:
        """What is known of its names, in words: `EP 1, PyTorch not known`; no text but known ones."""
        return ", ".join(f"{_words(name)} {self._shown(name, config)}" for name in self.names)

    def _shown(self, name: str, config: Config) -> str:
        value = named(name).of(config)
        if value is None or value is NULL or value == "":
            return "not known" if value is None else "not set"
        if isinstance(value, bool):
            return "on" if value else "off"
        known = {*self.words, *(knobs()[name].choices if name in knobs() else ())}
        if isinstance(value, tuple):
            return ", ".join(str(one) for one in value if one in known) or ("others" if value else "none")
        return str(value) if not isinstance(value, str) or value in known else "another value"


@cache
def condition(text: str) -> Condition:
    """A condition by its text. ValueError: a name that nobody knows, or a form that is none of ours."""
    try:
        tree = ast.parse(text, mode="eval").body
        term = _compiled(tree)
    except (ValueError, SyntaxError, KeyError) as error:
        raise ValueError(f"{text}: {error}") from None
    words = frozenset(node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return Condition(text, term, tuple(dict.fromkeys(_names(term))), words)


def named(name: str) -> Term:
    """A name as a term: None where unknown, NULL where it is said to be null. ValueError: no such name."""
    if name in NAMES:
        return Term(_once(name, NAMES[name].of), name=name)
    if name.startswith("env."):
        return Term(lambda c: c.env(name.removeprefix("env.")), name=name)
    if name not in knobs():
        raise ValueError(f"{name} is neither a knob nor a fact")
    return Term(lambda c: NULL if (found := c.value(name)) is None and c.known(name) else found, name=name)


@cache
def _knobs(names: tuple[str, ...]) -> tuple[str, ...]:
    spoken = (NAMES[name].knobs if name in NAMES else (name,) for name in names)
    return tuple(dict.fromkeys(knob for several in spoken for knob in several))


def _once(name: str, of: Evaluated) -> Evaluated:
    """A fact that is computed once for a configuration."""

    def told(config: Config) -> object:
        if name not in config.told:
            config.told[name] = of(config)
        return config.told[name]

    return told


def _words(name: str) -> str:
    return (NAMES[name].words if name in NAMES else "") or name


def _truth(value: object) -> bool | None:
    if isinstance(value, str):
        return value.lower() not in OFF
    return None if value is None else bool(value)


def _unknown(term: Term, config: Config) -> list[str]:
    if term.of(config) is not None:
        return []
    return [term.name] if term.name else [name for part in term.parts for name in _unknown(part, config)]


def _tells(name: str, config: Config) -> tuple[str, ...]:
    if name not in NAMES:
        return () if config.known(name) else (name,)
    fact = NAMES[name]
    unknown = tuple(knob for knob in fact.knobs if not config.known(knob))
    return (*unknown, fact.option) if fact.option else unknown


def _names(term: Term) -> list[str]:
    return [term.name] if term.name else [name for part in term.parts for name in _names(part)]


def _compiled(node: ast.expr) -> Term:
    match node:
        case ast.Constant(value=value):
            constant = NULL if value is None else value
            return Term(lambda c: constant)
        case ast.Tuple(elts=elements) | ast.Set(elts=elements):
            several = tuple(_compiled(one).of for one in elements)
            return _constants(several, isinstance(node, ast.Set))
        case ast.Name() | ast.Attribute():
            return named(ast.unparse(node))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            term = _compiled(operand)
            return Term(lambda c: None if (found := _truth(term.of(c))) is None else not found, (term,))
        case ast.BoolOp(op=op, values=values):
            terms = tuple(_compiled(one) for one in values)
            return Term(_joined(terms, isinstance(op, ast.Or)), terms)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(type(op), left, right)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return _met(_listed(left), _listed(right))
        case ast.BinOp(left=left, op=op, right=right):
            return _computed(_ARITHMETIC[type(op)], _compiled(left), _compiled(right))
    raise ValueError(f"{ast.unparse(node)} is no part of a condition")


def _constants(several: tuple[Evaluated, ...], is_set: bool) -> Term:
    blank = Config.__new__(Config)
    values = tuple(one(blank) for one in several)
    found = frozenset(values) if is_set else values
    return Term(lambda c: found)


def _listed(node: ast.expr) -> Term:
    """A knob as its list of names; other terms as they are."""
    term = _compiled(node)
    return Term(lambda c: c.names(term.name), name=term.name) if term.name in knobs() else term


def _joined(terms: tuple[Term, ...], decides: bool) -> Evaluated:
    """`or` is decided by what is true, `and` by what is not."""

    def of(config: Config) -> bool | None:
        found: bool | None = not decides
        for term in terms:
            one = _truth(term.of(config))
            if one is decides:
                return decides
            if one is None:
                found = None
        return found

    return of


def _compared(op: type[ast.cmpop], left: ast.expr, right: ast.expr) -> Term:
    order, of_lists = _ORDERS.get(op), isinstance(right, ast.Set)
    compare = order or _COMPARISONS[op]
    one = _listed(left) if of_lists else _compiled(left)
    other = _listed(right) if op in (ast.In, ast.NotIn) else _compiled(right)

    def of(config: Config) -> object:
        found, beside = one.of(config), other.of(config)
        if found is None or beside is None:
            return None
        if order:
            return order(_as_set(found), beside) if of_lists else _ordered(order, found, beside)
        return compare(found, Version(str(beside)) if isinstance(found, Version) else beside)

    return Term(of, (one, other))


def _ordered(compare: Callable[[Any, Any], object], one: object, other: object) -> object:
    if NULL in (one, other):
        return False
    if isinstance(one, Version):
        return compare(one, Version(str(other)))
    if _is_number(one) and _is_number(other):
        return compare(one, other)
    return None


def _met(one: Term, other: Term) -> Term:
    def of(config: Config) -> object:
        found, beside = one.of(config), other.of(config)
        return None if found is None or beside is None else bool(_as_set(found) & _as_set(beside))

    return Term(of, (one, other))


def _computed(compute: Callable[[Any, Any], object], one: Term, other: Term) -> Term:
    divides = compute in (operator.mod, operator.floordiv)

    def of(config: Config) -> object:
        found, beside = one.of(config), other.of(config)
        if not _is_whole(found) or not _is_whole(beside) or (divides and not beside):
            return None
        return compute(found, beside)

    return Term(of, (one, other))


def _as_set(value: object) -> frozenset[object]:
    return frozenset(value) if isinstance(value, tuple | frozenset) else frozenset()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
