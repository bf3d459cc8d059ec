"""Process groups of a PyTorch profiler trace, and the sizes of collectives.

PyTorch writes name and ranks beside each collective, of long lists the beginning only, and in newer releases
all groups of the process into `distributedInfo` (pytorch/pytorch, torch/csrc/profiler/util.cpp and
torch/profiler/profiler.py). Names go no further than a fingerprint.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.formats.kineto_rows import Table
from traces.process_group import ProcessGroup

_NOTHING: Final = -1
_RANKS: Final = re.compile(r"\[\s*\d{1,7}(?:\s*,\s*\d{1,7})*\s*\]")
"""A whole list of ranks; one that was cut ends with points."""
_MOST: Final = 1 << 20
"""No run has more ranks."""

_BYTES: Final = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Float", "Int", "UInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Double", "Long", "UInt64", "ComplexFloat"), 8),
}
"""Bytes of an element, by the name of its type (c10/core/ScalarType.h)."""
TYPES: Final = frozenset(_BYTES)
_CUT_RANKS: Final = re.compile(r"\[[\s\d,.]*\]")


def process_groups(
    kernels: Table, numbers: Mapping[str, int], header: Mapping[str, object]
) -> tuple[ProcessGroup, ...]:
    """The groups in the order of their numbers, by name."""
    (group, names), (members, texts) = kernels.texts["group"], kernels.texts["members"]
    size = kernels["group_size"]
    in_header = listed(header)
    found: dict[int, ProcessGroup] = {}
    for row in _first_rows(group):
        name = names[group[row]]
        if name in numbers:
            text = texts[members[row]] if members[row] >= 0 else ""
            told = ranks(text) or in_header.get(name)
            count = int(size[row]) if 0 < size[row] <= _MOST else (len(told) if told else None)
            key = _fingerprint(name, told, text)
            found[numbers[name]] = ProcessGroup(key, count, told)
    return tuple(found[number] for number in range(len(found)))


def sizes(kernels: Table) -> IntArray:
    """Bytes that this rank gives to each collective; -1 where it is not told."""
    dtype, names = kernels.texts["dtype"]
    of_type = np.array([*(_BYTES.get(name, 0) for name in names), 0], dtype=np.int64)[dtype]
    elements = kernels["elements"]
    told = (of_type > 0) & (elements != NULL) & (elements >= 0) & (elements < 1 << 56)
    return np.where(told, np.where(told, elements, 0) * of_type, _NOTHING)


def number_of(name: str) -> str:
    """What stands for a group's name, the same on every rank: its number, or one made of its name."""
    if name.isascii() and name.isdigit():
        return name
    return str(int.from_bytes(blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "big"))


def are_ranks(text: str) -> bool:
    """Whether a text is a list of ranks and nothing else; long ones end with points."""
    return bool(text) and _CUT_RANKS.fullmatch(text) is not None


def _first_rows(group: IntArray) -> list[int]:
    codes, first = np.unique(group, return_index=True)
    return [int(row) for code, row in zip(codes.tolist(), first.tolist(), strict=True) if code >= 0]


def ranks(text: str) -> tuple[int, ...] | None:
    """All ranks of a list in a text; None where it is cut, or none."""
    return tuple(int(rank) for rank in re.findall(r"\d+", text)) if _RANKS.fullmatch(text) else None


def listed(header: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Name of each group in the header -> its ranks."""
    distributed = header.get("distributedInfo")
    groups = distributed.get("pg_config") if isinstance(distributed, dict) else None
    found = {}
    for group in groups if isinstance(groups, list) else ():
        told, name = (group.get("ranks"), group.get("pg_name")) if isinstance(group, dict) else (None, None)
        if isinstance(name, str) and isinstance(told, list) and told and all(map(_is_rank, told)):
            found[name] = tuple(told)
    return found


def _is_rank(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < _MOST


def _fingerprint(name: str, members: tuple[int, ...] | None, text: str) -> int:
    words = f"{name}\x00{members if members else text}"
    return int.from_bytes(
        blake2b(words.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True
    )
