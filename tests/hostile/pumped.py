"""Texts that take a pattern long if any do: made of its own parse, with a part of it said again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_SPELLED = ((r"\pL\pM\pN", r"\w"), (r"\pL\pN", r"\w"), (r"\x{85}\pZ", r"\x85 "))
"""What RE2 has and Python's parser has not, as that one spells it."""
_OF_CATEGORY: dict[Any, str] = {
    codes.CATEGORY_DIGIT: "7", codes.CATEGORY_NOT_DIGIT: "a", codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "a", codes.CATEGORY_WORD: "a", codes.CATEGORY_NOT_WORD: "-",
}  # fmt: skip
_ANY_OTHER = "a7_ -/.:,<>()[]{}'\"\\=+*é!"
_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}
_BREAKS = "\x00!"
"""Characters that hardly a pattern goes on with."""


class Pump(NamedTuple):
    """A text of any length: `before` once, `again` as often as there is room, `after` once."""

    before: str
    again: str
    after: str

    def of(self, length: int) -> str:
        return self.before + self.again * (length // len(self.again)) + self.after


def pumps(pattern: str) -> list[Pump]:
    """What a pattern repeats behind what leads to it, each of its letters, and all that it matches."""
    tree = parser.parse(_spelled(pattern))
    whole = _sample(tree)
    parts = (*_repeated(tree, ""), *(("", one) for one in (*_atoms(tree), whole, whole[:-1])))
    found: dict[Pump, None] = {}
    for before, again in parts:
        if again:
            found[Pump(before, again, _BREAKS)] = None
            found[Pump("", before + again, "")] = None
    return [*found]


def _spelled(pattern: str) -> str:
    for ours, theirs in _SPELLED:
        pattern = pattern.replace(ours, theirs)
    return pattern


def _sample(tree: Any) -> str:
    """A short text that a parse matches, or nearly."""
    return "".join(map(_of_node, tree))


def _of_node(node: Any) -> str:
    code, what = node
    if code in _REPEATS:
        least, _, inner = what
        return _sample(inner) * max(1, int(least))
    match code:
        case codes.LITERAL:
            return chr(what)
        case codes.NOT_LITERAL:
            return next(one for one in _ANY_OTHER if one != chr(what))
        case codes.ANY:
            return "a"
        case codes.IN:
            return _of_class(what)
        case codes.BRANCH:
            return max((_sample(one) for one in what[1]), key=len)
        case codes.SUBPATTERN:
            return _sample(what[-1])
        case codes.ATOMIC_GROUP:
            return _sample(what)
    return ""


def _of_class(members: Any) -> str:
    if members[0][0] is codes.NEGATE:
        return next(one for one in _ANY_OTHER if not any(_is_in(one, member) for member in members[1:]))
    code, what = members[0]
    if code is codes.CATEGORY:
        return _OF_CATEGORY[what]
    return chr(what if code is codes.LITERAL else what[0])


def _is_in(one: str, member: Any) -> bool:
    code, what = member
    if code is codes.CATEGORY:
        spelled = {codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_SPACE: r"\s", codes.CATEGORY_WORD: r"\w"}
        return re.fullmatch(spelled.get(what, "."), one) is not None
    first, last = (what, what) if code is codes.LITERAL else what
    return bool(first <= ord(one) <= last)


def _repeated(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """What leads to each repeat of a parse, and what it repeats."""
    for node in tree:
        code, what = node
        if code in _REPEATS:
            yield before, _sample(what[2])
        for inner in _inner(node):
            yield from _repeated(inner, before)
        before += _of_node(node)


def _inner(node: Any) -> Iterator[Any]:
    code, what = node
    if code in _REPEATS:
        yield what[2]
    elif code is codes.BRANCH:
        yield from what[1]
    elif code is codes.SUBPATTERN:
        yield what[-1]
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield what[1]


def _atoms(tree: Any) -> Iterator[str]:
    """A character for each letter and class of a parse."""
    for node in tree:
        if node[0] in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            yield _of_node(node)
        for inner in _inner(node):
            yield from _atoms(inner)


def endless_numbers(pattern: str) -> bool:
    """Whether a group takes digits without an end: Python makes no number of over 4,300 of them."""
    return any(_is_endless(group) for group in _groups(parser.parse(_spelled(pattern))))


def _groups(tree: Any) -> Iterator[Any]:
    for code, arg in tree:
        if code is codes.SUBPATTERN and arg[0]:
            yield arg[3]
        yield from (found for part in _parts(code, arg) for found in _groups(part))


def _is_endless(tree: Any) -> bool:
    return any(
        (code in _REPEATS and arg[1] is codes.MAXREPEAT and _are_digits(arg[2]))
        or any(_is_endless(part) for part in _parts(code, arg))
        for code, arg in tree
    )


def _parts(code: Any, arg: Any) -> list[Any]:
    if code is codes.BRANCH:
        return list(arg[1])
    if code is codes.SUBPATTERN:
        return [arg[3]]
    return [arg[2]] if code in _REPEATS else []


def _are_digits(tree: Any) -> bool:
    known = ((codes.CATEGORY, codes.CATEGORY_DIGIT), (codes.RANGE, (ord("0"), ord("9"))))
    return all(code is codes.IN and all(one in known for one in arg) for code, arg in tree)
