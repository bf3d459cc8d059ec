"""What is done to any input: numbers at their edges, changes of JSON, of texts, of bytes."""

from __future__ import annotations

from random import Random
from typing import Any, Final

NUMBERS: Final = (
    *(0, 1, -1, 2, 7, 59, 127, 128, 255, 256, 65_535, 65_536),
    *(sign * (2**bits + more) for bits in (31, 32, 53, 61, 62) for more in (-1, 0, 1) for sign in (1, -1)),
    *(2**63 - 1, -(2**63), -(2**63) + 1),
)
"""All fit into 64 bits."""
BEYOND: Final = (2**63, 2**64, -(2**63) - 1, 10**30, -(10**40), 10**400)
FLOATS: Final = (0.5, -0.5, 1e-300, 1e308, -1e308, 1.7976931348623157e308, 5e-324, 0.1)
TEXTS: Final = (
    *(
        "",
        " ",
        "x",
        "0",
        "-1",
        "1e9",
        "1e999",
        "NaN",
        "inf",
        "None",
        "null",
        "true",
        "None\x00",
        "é",
        "\ufeff",
    ),
    *("\ud800", "\u2028", "\x1b[31m", "a\nb", "a\tb", '"', "'", "\\", "[", "{", "%s", "{0}", "0x10", "1_000"),
    *(
        "٣",
        "²",
        "½",
        "1.5",
        "1,5",
        "../x",
        "$HOME",
        "`x`",
        "x" * 300,
        "1" * 25,
        "1" * 5_000,
        "[[[[",
        "<<",
        "&a",
    ),
)
SMALL: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [1, 2, 3],
    {"a": {"b": []}},
)
_LONG: Final = 400
"""Longer lines are not made longer: of bytes there are enough."""
BYTES: Final = (0, 1, 5, 10, 13, 34, 44, 58, 91, 92, 123, 127, 128, 192, 255)


def value(rng: Random) -> Any:
    """Something of any type."""
    return rng.choice(rng.choice((NUMBERS, NUMBERS, BEYOND, FLOATS, TEXTS, TEXTS, SMALL)))


def tree(rng: Random, whole: Any) -> Any:
    """A value of JSON or MessagePack with one place of it changed; what is given stays as it is."""
    if isinstance(whole, dict) and whole and rng.random() < 0.93:
        key = rng.choice([*whole])
        return _mapping(rng, whole, key)
    if isinstance(whole, list | tuple) and whole and rng.random() < 0.93:
        return _sequence(rng, [*whole])
    return leaf(rng, whole)


def _mapping(rng: Random, whole: dict[Any, Any], key: Any) -> dict[Any, Any]:
    way = rng.randrange(14)
    if way == 0:
        return {name: one for name, one in whole.items() if name != key}
    if way == 1:
        return {name if name != key else rng.choice(TEXTS): one for name, one in whole.items()}
    if way == 2:
        return {**whole, rng.choice(TEXTS): value(rng)}
    if way == 3:
        return {**whole, key: whole[rng.choice([*whole])]}
    return {**whole, key: tree(rng, whole[key])}


def _sequence(rng: Random, whole: list[Any]) -> list[Any]:
    place, other, way = rng.randrange(len(whole)), rng.randrange(len(whole)), rng.randrange(14)
    if way == 0:
        return whole[:place] + whole[place + 1 :]
    if way == 1:
        return [*whole, *whole[place:]]
    if way == 2:
        whole[place], whole[other] = whole[other], whole[place]
    elif way == 3:
        whole.insert(place, value(rng))
    else:
        whole[place] = tree(rng, whole[place])
    return whole


def leaf(rng: Random, one: Any) -> Any:
    """A value changed a little, or another one."""
    way = rng.randrange(4)
    if way == 0 and isinstance(one, int | float):
        return rng.choice((one + 1, one - 1, -one, one * 1_000_003, one * 2))
    if way == 0 and isinstance(one, str):
        return word(rng, one)
    if way == 0 and isinstance(one, bytes):
        return flipped(rng, one)
    return value(rng)


def word(rng: Random, one: str) -> str:
    """A text with something put in, left out or doubled."""
    at, way = rng.randrange(len(one) + 1), rng.randrange(5)
    end = min(len(one), at + rng.randrange(1, 9))
    if way == 0:
        return one[:at] + one[end:]
    if way == 1:
        return one[:end] + one[at:]
    if way == 2:
        return one[:at]
    return one[:at] + rng.choice(TEXTS) + one[at if way == 3 else end :]


def lines(rng: Random, one: str, others: str) -> str:
    """A text with one of its lines, or a word of it, changed; some lines may come from others."""
    rows = one.split("\n")
    at, way = rng.randrange(len(rows)), rng.randrange(10)
    if way == 0:
        del rows[at]
    elif way == 1:
        rows.insert(at, rows[rng.randrange(len(rows))])
    elif way == 2:
        several = others.split("\n")
        first = rng.randrange(len(several))
        rows[at:at] = several[first : first + rng.randrange(1, 6)]
    elif way == 3 and len(rows[at]) < _LONG:
        rows[at] = rows[at] * rng.choice((2, 3, 300))
    elif way == 4:
        rows = rows[:at] + [" " * rng.randrange(9) + row for row in rows[at:]]
    elif way == 5:
        rows[at] = word(rng, rows[at])
    else:
        rows[at] = _words(rng, rows[at])
    return "\n".join(rows)


def _words(rng: Random, row: str) -> str:
    """A line with one of its words another one."""
    words = row.split(" ")
    at = rng.randrange(len(words))
    before, mark, after = words[at].partition(rng.choice(("=", ":", "/", ".", "|", "-")))
    drawn = rng.choice((str(rng.choice(NUMBERS)), str(rng.choice(BEYOND)), rng.choice(TEXTS), after, before))
    words[at] = rng.choice((before + mark + drawn, drawn, f"{words[at]} {drawn}"))
    return " ".join(words)


def flipped(rng: Random, content: bytes) -> bytes:
    """Bytes with some changed, cut off, doubled or put elsewhere."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, way = rng.randrange(len(data) + 1), rng.randrange(12)
        end = min(len(data), at + rng.randrange(1, 40))
        if way == 0:
            del data[at:end]
        elif way == 1:
            data[at:at] = data[at:end]
        elif way == 2 and rng.random() < 0.3:
            del data[at:]
        elif way == 3:
            data[at:at] = bytes([rng.choice(BYTES)] * rng.choice((1, 2, 64)))
        elif at < len(data):
            data[at] = rng.choice((rng.choice(BYTES), rng.randrange(256), data[at] ^ 1 << rng.randrange(8)))
    return bytes(data)
