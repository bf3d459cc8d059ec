"""What a PyTorch profiler trace says of collectives: how ranks exchange, in which group, what that
is for.

PyTorch writes it beside the operator `record_param_comms` (torch/csrc/profiler/util.cpp), and the
profiler beside the kernel that this operator launched (pytorch/kineto,
libkineto/src/output_json.cpp). What a group of `batch_isend_irecv` launches stands outside of such
an operator and has none of it (pytorch/pytorch, issue 194693). Descriptions are the user's own
text: they are matched with the words we know and go no further.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Final

import numpy as np

from traces.arrays import IntArray, codes_of, ints
from traces.columns import EXCHANGES, NULL, PURPOSES, Collectives, ProcessGroup
from traces.formats.kineto_json import Event
from traces.formats.tables import Table
from traces.patterns import compiled, compiled_rows

NOTHING: Final = -1
_RANKS: Final = compiled(r"\[\s*\d{1,7}(?:\s*,\s*\d{1,7})*\s*\]")
"""A whole list of ranks; one that was cut ends with points."""
_MOST: Final = 1 << 20
"""No run has more ranks."""

BYTES: Final = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Float", "Int", "UInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Double", "Long", "UInt64", "ComplexFloat"), 8),
}
"""Bytes of an element, by the name of its type (c10/core/ScalarType.h)."""


def process_groups(
    kernels: Table, numbers: Mapping[str, int], header: Mapping[str, object]
) -> tuple[ProcessGroup, ...]:
    """The groups in the order of their numbers, by name."""
    (group, names), (members, texts) = kernels.texts["group"], kernels.texts["members"]
    size = kernels["group_size"]
    in_header = listed(header)
    found: dict[int, ProcessGroup] = {}
    for row in np.unique(group, return_index=True)[1].tolist():
        name = names[group[row]] if group[row] >= 0 else ""
        if name in numbers:
            text = texts[members[row]] if members[row] >= 0 else ""
            told = ranks(text) or in_header.get(name)
            count = len(told) if told else None
            if 0 < size[row] <= _MOST:
                count = int(size[row])
            key = fingerprint(f"{name}\x00{told if told else text}")
            found[numbers[name]] = ProcessGroup(key, count, told)
    return tuple(found[number] for number in range(len(found)))


def sizes(kernels: Table) -> IntArray:
    """Bytes that this rank gives to each collective; -1 where it is not told."""
    dtype, names = kernels.texts["dtype"]
    of_type = ints([*(BYTES.get(name, 0) for name in names), 0])[dtype]
    elements = kernels["elements"]
    told = (of_type > 0) & (elements != NULL) & (elements >= 0) & (elements < 1 << 56)
    return np.where(told, np.where(told, elements, 0) * of_type, NOTHING)


def ranks(text: str) -> tuple[int, ...] | None:
    """All ranks of a list in a text; None where it is cut, or none."""
    if _RANKS.fullmatch(text):
        return tuple(int(rank) for rank in compiled(r"\d+").findall(text))
    return None


def listed(header: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Name of each group in the header -> its ranks."""
    found = {}
    for group in _groups(header):
        told, name = group.get("ranks"), group.get("pg_name")
        whole = isinstance(told, list) and all(
            isinstance(one, int) and 0 <= one < _MOST for one in told
        )
        if isinstance(name, str) and told and whole:
            found[name] = tuple(told)
    return found


def _groups(header: Mapping[str, object]) -> list[Event]:
    distributed = header.get("distributedInfo")
    groups = distributed.get("pg_config") if isinstance(distributed, dict) else None
    if isinstance(groups, list):
        return [group for group in groups if isinstance(group, dict)]
    return []


def fingerprint(words: str) -> int:
    """A signed number of 64 bits for a text."""
    digest = blake2b(words.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


EXCHANGE_OF: Final = {
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "send": "p2p",
    "recv": "p2p",
}
"""`Collective name` of what runs as sends and receives (PyTorch, ProcessGroupNCCL.cpp)."""

_PURPOSES: Final = compiled_rows(
    ("ep", r"EXPERT_(?:TENSOR_AND_)?MODEL_PARALLEL_GROUP|mesh_ep"),
    ("pp", r"PIPELINE_MODEL_PARALLEL_GROUP|mesh_pp"),
    ("cp", r"CONTEXT_PARALLEL_GROUP|HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L\d+|mesh_cp"),
    (
        "dp",
        r"(?:INT(?:RA|ER)_PARTIAL_)?(?:EXPERT_)?DATA_PARALLEL_GROUP(?:_WITH_CP)?(?:_AG)?"
        r"|mesh_dp(?:_replicate|_shard)?(?:_cp)?|mesh_dp_shard_mod_ep|mesh_e?fsdp",
    ),
    ("tp", r"(?:TENSOR_MODEL|EXPERT_TENSOR)_PARALLEL_GROUP|mesh_e?tp"),
)
"""Descriptions that name one purpose: Megatron-Core's (parallel_state.py, core 0.11 to 0.19), and
those of a DeviceMesh, `mesh_` before the name of the dimension, with the names that torchtitan
gives.

Left out on purpose: groups across several kinds of parallelism (MODEL_PARALLEL_GROUP and the like).
"""


def collectives(kernels: Table, header: Mapping[str, object]) -> Collectives | None:
    """What the arguments of each kernel and `distributedInfo` say of its collective; None where
    nothing.

    Older releases describe the group in the header only. Of every text the empty one, last, stands
    for none.
    """
    collective, group, own = (
        kernels.texts[key][0] for key in ("collective", "group", "description")
    )
    exchanged, names, texts = (
        (*kernels.texts[key][1], "") for key in ("collective", "group", "description")
    )
    numbers = codes_of(filter(None, names))
    pairs, pair = np.unique((group + 1) * len(texts) + own + 1, return_inverse=True)
    described = descriptions_of(header)
    in_pairs = [divmod(each, len(texts)) for each in pairs.tolist()]
    descriptions = [
        texts[text - 1] or described.get(names[name - 1], "") for name, text in in_pairs
    ]
    columns = (
        _array(
            EXCHANGES.index(EXCHANGE_OF[name]) if name in EXCHANGE_OF else NOTHING
            for name in exchanged
        )[collective],
        _array(numbers.get(name, NOTHING) for name in names)[group],
        _array(map(purpose_of, descriptions))[pair],
    )
    if all((column == NOTHING).all() for column in columns):
        return None
    return Collectives(
        *columns,
        tuple(sorted({text for text in descriptions if purpose_of(text) != NOTHING})),
        process_groups(kernels, numbers, header),
        _told(np.where(kernels["sequence"] < 0, NOTHING, kernels["sequence"])),
        _told(sizes(kernels)),
    )


def _told(column: IntArray) -> IntArray | None:
    if (column == NOTHING).all():
        return None
    return column


def _array(numbers: Iterable[int]) -> IntArray:
    return np.fromiter(numbers, dtype=np.int64)


@cache
def purpose_of(description: str) -> int:
    """Place in `PURPOSES` of what a group's description says it is for; -1 where it does not."""
    found = (purpose for purpose, pattern in _PURPOSES if pattern.fullmatch(description))
    return next((PURPOSES.index(purpose) for purpose in found), NOTHING)


def descriptions_of(header: Mapping[str, object]) -> dict[str, str]:
    """Name of each group in the header -> its description."""
    return {text_of(group, "pg_name"): text_of(group, "pg_desc") for group in _groups(header)}


def text_of(given: Event, key: str) -> str:
    """A text of an event or a group; empty where there is none."""
    value = given.get(key)
    if isinstance(value, str):
        return value
    return ""
