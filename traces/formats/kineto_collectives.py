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
from itertools import compress, repeat
from typing import Final

import numpy as np

from traces.arrays import IntArray, codes_of, ints
from traces.columns import EXCHANGES, NULL, PURPOSES, Collectives, ProcessGroup
from traces.formats.kineto_json import Event
from traces.formats.kineto_rows import objects
from traces.formats.tables import Table
from traces.patterns import compiled, compiled_rows, numbers_in

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
    groups = []  # names are numbered in the order in which the rows have them
    for row in np.unique(group, return_index=True)[1].tolist():
        name = names[group[row]] if group[row] >= 0 else ""
        if name in numbers:
            text = texts[members[row]] if members[row] >= 0 else ""
            group_ranks = ranks(text) or in_header.get(name)
            count = len(group_ranks) if group_ranks else None
            if 0 < size[row] <= _MOST:
                count = int(size[row])
            key = fingerprint(f"{name}\x00{group_ranks or text}")
            groups.append(ProcessGroup(key, count, group_ranks))
    return tuple(groups)


def sizes(kernels: Table) -> IntArray:
    """Bytes that this rank gives to each collective; -1 where it is not told."""
    dtype, names = kernels.texts["dtype"]
    of_type = _of_each(names, BYTES, 0)[dtype]
    elements = kernels["elements"]
    is_told = (of_type > 0) & (elements != NULL) & (elements >= 0) & (elements < 1 << 56)
    return np.where(is_told, np.where(is_told, elements, 0) * of_type, NOTHING)


def ranks(text: str) -> tuple[int, ...] | None:
    """All ranks of a list in a text; None where it is cut, or none."""
    if _RANKS.fullmatch(text):
        return numbers_in(text)
    return None


def listed(header: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Name of each group in the header -> its ranks."""
    ranks_by_name = {}
    for group in _groups(header):
        members, name = group.get("ranks"), group.get("pg_name")
        whole = isinstance(members, list) and all(
            isinstance(member, int) and 0 <= member < _MOST for member in members
        )
        if isinstance(name, str) and members and whole:
            ranks_by_name[name] = tuple(members)
    return ranks_by_name


def _groups(header: Mapping[str, object]) -> list[Event]:
    distributed = header.get("distributedInfo")
    if isinstance(distributed, dict):
        return objects(distributed.get("pg_config"))
    return []


def fingerprint(words: str) -> int:
    """A signed number of 64 bits for a text."""
    digest = blake2b(words.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


EXCHANGE_OF: Final = {
    **dict.fromkeys(("all_to_all", "all_to_allv"), EXCHANGES.index("all_to_all")),
    **dict.fromkeys(("send", "recv"), EXCHANGES.index("p2p")),
}
"""`Collective name` of what runs as sends and receives (PyTorch, ProcessGroupNCCL.cpp), -> place in
`EXCHANGES`."""

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
    collective, exchanged = kernels.texts["collective"]
    group, names = kernels.texts["group"]
    own, texts = kernels.texts["description"]
    numbers = codes_of(filter(None, names))
    names, texts = (*names, ""), (*texts, "")
    pairs, pair = np.unique((group + 1) * len(texts) + own + 1, return_inverse=True)
    described = descriptions_of(header)
    descriptions = []
    for both_codes in pairs.tolist():
        name, text = divmod(both_codes, len(texts))
        descriptions.append(texts[text - 1] or described.get(names[name - 1], ""))
    purposes = ints([*map(purpose_of, descriptions)])
    columns = (
        _of_each(exchanged, EXCHANGE_OF, NOTHING)[collective],
        _of_each(names, numbers, NOTHING)[group],
        purposes[pair],
    )
    if not any(map(_is_told, columns)):
        return None
    return Collectives(
        *columns,
        tuple(sorted({*compress(descriptions, purposes != NOTHING)})),
        process_groups(kernels, numbers, header),
        _if_told(np.where(kernels["sequence"] < 0, NOTHING, kernels["sequence"])),
        _if_told(sizes(kernels)),
    )


def _if_told(column: IntArray) -> IntArray | None:
    if _is_told(column):
        return column
    return None


def _is_told(column: IntArray) -> bool:
    return bool((column != NOTHING).any())


def _of_each(names: Iterable[str], table: Mapping[str, int], unknown: int) -> IntArray:
    """What a table says of each name; one more at the end for rows without one (-1)."""
    return ints([*map(table.get, names, repeat(unknown)), unknown])


@cache
def purpose_of(description: str) -> int:
    """Place in `PURPOSES` of what a group's description says it is for; -1 where it does not."""
    for purpose, pattern in _PURPOSES:
        if pattern.fullmatch(description):
            return PURPOSES.index(purpose)
    return NOTHING


def descriptions_of(header: Mapping[str, object]) -> dict[str, str]:
    """Name of each group in the header -> its description."""
    return {text_of(group, "pg_name"): text_of(group, "pg_desc") for group in _groups(header)}


def text_of(given: Event, key: str) -> str:
    """A text of an event or a group; empty where there is none."""
    value = given.get(key)
    if isinstance(value, str):
        return value
    return ""
