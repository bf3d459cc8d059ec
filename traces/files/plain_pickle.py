"""Pickles of plain values: containers, numbers, texts. Nothing of a file is ever called or
imported.

A pickle is a program. Here only the operations exist that build plain values; a file that asks for
any other (a class, a call, an object of any kind) is refused before anything of it counts.
Operations are those of Python's pickletools.py, which PyTorch writes as well
(torch/csrc/jit/serialization/pickler.cpp).
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from traces.files.unpacked import TIMES

Stack = list[Any]

_CHARACTERS: Final = 16
"""A text of so many counts as one value more."""
_CONTAINERS: Final = (dict, list, tuple)
_LARGEST_KEY: Final = 1 << 63
"""Python gives whole numbers that differ by 2^61 - 1 one hash; of 64 bits eight at most share
one."""
PICKLE: Final = b"\x80"
"""The first byte of one, of protocol 2 or newer."""


class NotPlain(ValueError):
    """It is no pickle, or asks for more than plain values."""


class _Mark:
    """Where the parts of a whole begin."""


_MARK: Final = _Mark()


class _Reading:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: Stack = []
        self.memo: dict[int, Any] = {}

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise NotPlain("it is cut off")
        self.at += count
        return piece

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def since_mark(self) -> Stack:
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                parts = self.stack[place + 1 :]
                del self.stack[place:]
                return parts
        raise NotPlain("its parts do not fit together")

    def last(self, kind: type) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise NotPlain("its parts do not fit together")
        return self.stack[-1]

    def pop(self) -> Any:
        if not self.stack or (value := self.stack.pop()) is _MARK:
            raise NotPlain("its parts do not fit together")
        return value


Operation = Callable[[_Reading], object]
"""What is done for one byte of a pickle."""


def _text(form: str) -> Operation:
    def read(reading: _Reading) -> None:
        reading.stack.append(reading.take(reading.number(form)).decode("utf-8", "replace"))

    return read


def _number(form: str) -> Operation:
    return lambda reading: reading.stack.append(reading.number(form))


def _value(make: Callable[[], Any]) -> Operation:
    return lambda reading: reading.stack.append(make())


def _long(reading: _Reading) -> None:
    reading.stack.append(int.from_bytes(reading.take(reading.number("<B")), "little", signed=True))


def _tuple_of(count: int) -> Operation:
    def read(reading: _Reading) -> None:
        reading.stack.append(tuple(reversed([reading.pop() for _ in range(count)])))

    return read


def _tuple(reading: _Reading) -> None:
    reading.stack.append(tuple(reading.since_mark()))


def _appends(reading: _Reading) -> None:
    parts = reading.since_mark()
    reading.last(list).extend(parts)


def _append(reading: _Reading) -> None:
    value = reading.pop()
    reading.last(list).append(value)


def _set_items(reading: _Reading) -> None:
    _filled(reading, reading.since_mark())


def _set_item(reading: _Reading) -> None:
    value, key = reading.pop(), reading.pop()
    _filled(reading, [key, value])


def _filled(reading: _Reading, parts: Stack) -> None:
    if len(parts) % 2:
        raise NotPlain("its parts do not fit together")
    if not all(isinstance(key, str | float | None) or _is_number(key) for key in parts[::2]):
        raise NotPlain("a key of it is no text and no number of 64 bits")
    reading.last(dict).update(zip(parts[::2], parts[1::2], strict=True))


def _is_number(key: object) -> bool:
    return isinstance(key, int) and -_LARGEST_KEY <= key < _LARGEST_KEY


def _put(form: str) -> Operation:
    def read(reading: _Reading) -> None:
        key = reading.number(form)
        reading.memo[key] = reading.stack[-1] if reading.stack else None

    return read


def _memoize(reading: _Reading) -> None:
    reading.memo[len(reading.memo)] = reading.stack[-1] if reading.stack else None


def _get(form: str) -> Operation:
    def read(reading: _Reading) -> None:
        if (key := reading.number(form)) not in reading.memo:
            raise NotPlain("its parts do not fit together")
        reading.stack.append(reading.memo[key])

    return read


_READ: Final[dict[int, Operation]] = {
    0x80: lambda reading: reading.take(1),  # PROTO
    0x95: lambda reading: reading.take(8),  # FRAME
    ord("("): _value(lambda: _MARK),
    ord("N"): _value(lambda: None),
    0x88: _value(lambda: True),
    0x89: _value(lambda: False),
    ord("J"): _number("<i"),
    ord("K"): _number("<B"),
    ord("M"): _number("<H"),
    0x8A: _long,
    ord("G"): _number(">d"),
    ord("X"): _text("<I"),
    0x8C: _text("<B"),
    0x8D: _text("<Q"),
    ord("]"): _value(list),
    ord("}"): _value(dict),
    ord(")"): _value(tuple),
    0x85: _tuple_of(1),
    0x86: _tuple_of(2),
    0x87: _tuple_of(3),
    ord("t"): _tuple,
    ord("a"): _append,
    ord("e"): _appends,
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord("q"): _put("<B"),
    ord("r"): _put("<I"),
    0x94: _memoize,
    ord("h"): _get("<B"),
    ord("j"): _get("<I"),
}


def read_plain(data: bytes) -> Any:
    """The value of a pickle. Raises `NotPlain` for anything but plain values, whatever the file
    is.
    """
    reading = _Reading(data)
    while True:
        code = reading.take(1)[0]
        if code == ord("."):
            break
        step = _READ.get(code)
        if step is None:
            raise NotPlain("it asks for more than plain values")
        step(reading)
    if len(reading.stack) != 1 or reading.stack[0] is _MARK:
        raise NotPlain("its parts do not fit together")
    if _unfolded(reading.stack[0]) > TIMES.value * len(data):
        raise NotPlain("it names parts of itself again and again")
    return reading.stack[0]


def _unfolded(value: Any) -> float:
    """How many values one holds, each counted as often as a reader comes to it; each part is looked
    at once.

    Raises `NotPlain` for one that holds itself.
    """
    sizes: dict[int, float] = {}
    begun = set[int]()
    left: Stack = [[value]]
    while left:
        whole = left.pop()
        if id(whole) in sizes:
            continue
        parts = [*whole, *whole.values()] if isinstance(whole, dict) else whole
        inner = [part for part in parts if isinstance(part, _CONTAINERS) and id(part) not in sizes]
        if not inner:
            sizes[id(whole)] = 1 + sum(sizes.get(id(part)) or _plain_size(part) for part in parts)
        elif id(whole) in begun:
            raise NotPlain("it holds itself")
        else:
            begun.add(id(whole))
            left += [whole, *inner]
    return sizes[id(whole)]


def _plain_size(value: object) -> float:
    if isinstance(value, str):
        return 1 + len(value) / _CHARACTERS
    return 1
