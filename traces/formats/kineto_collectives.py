"""What a PyTorch profiler trace says of collectives: how ranks exchange, in which group, what that is for.

PyTorch writes it beside the operator `record_param_comms` (torch/csrc/profiler/util.cpp), and the profiler
beside the kernel that this operator launched (pytorch/kineto, libkineto/src/output_json.cpp). What a group of
`batch_isend_irecv` launches stands outside of such an operator and has none of it (pytorch/pytorch, issue
194693). Descriptions are the user's own text: they are matched with the words we know and go no further.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import numpy as np

from traces.columns import EXCHANGES, PURPOSES, Collectives, IntArray
from traces.formats import kineto_groups
from traces.formats.kineto_json import Event
from traces.formats.kineto_rows import Table

_NOTHING: Final = -1
_EXCHANGES: Final = {"all_to_all": "all_to_all", "all_to_allv": "all_to_all", "send": "p2p", "recv": "p2p"}
"""`Collective name` of what runs as sends and receives (PyTorch, ProcessGroupNCCL.cpp)."""

_PURPOSES: Final = tuple(
    (purpose, re.compile(pattern))
    for purpose, pattern in (
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
)
"""Descriptions that name one purpose: Megatron-Core's (parallel_state.py, core 0.11 to 0.19), and those of a
DeviceMesh, `mesh_` before the name of the dimension, with the names that torchtitan gives.

Left out on purpose: groups across several kinds of parallelism (MODEL_PARALLEL_GROUP and the like).
"""


def collectives(kernels: Table, header: Mapping[str, object]) -> Collectives | None:
    """What the arguments of each kernel and `distributedInfo` say of its collective; None where nothing.

    Older releases describe the group in the header only. Of every text the empty one, last, stands for none.
    """
    collective, group, own = (kernels.texts[key][0] for key in ("collective", "group", "description"))
    exchanged, names, texts = ((*kernels.texts[key][1], "") for key in ("collective", "group", "description"))
    numbers = {name: number for number, name in enumerate(filter(None, names))}
    pairs, pair = np.unique((group + 1) * len(texts) + own + 1, return_inverse=True)
    described, in_pairs = _descriptions(header), [divmod(each, len(texts)) for each in pairs.tolist()]
    descriptions = [texts[text - 1] or described.get(names[name - 1], "") for name, text in in_pairs]
    columns = (
        _array(_exchange(name) for name in exchanged)[collective],
        _array(numbers.get(name, _NOTHING) for name in names)[group],
        _array(map(_purpose, descriptions))[pair],
    )
    if all((column == _NOTHING).all() for column in columns):
        return None
    return Collectives(
        *columns,
        tuple(sorted({text for text in descriptions if _purpose(text) != _NOTHING})),
        kineto_groups.process_groups(kernels, numbers, header),
        _told(np.where(kernels["sequence"] < 0, _NOTHING, kernels["sequence"])),
        _told(kineto_groups.sizes(kernels)),
    )


def _told(column: IntArray) -> IntArray | None:
    """The column, if it says anything."""
    return None if (column == _NOTHING).all() else column


def _array(numbers: Iterable[int]) -> IntArray:
    return np.fromiter(numbers, dtype=np.int64)


def _exchange(name: str) -> int:
    return EXCHANGES.index(_EXCHANGES[name]) if name in _EXCHANGES else _NOTHING


class KnownWords:
    """What of collectives' arguments may be written again: known words, numbers, and groups without a name.

    A group's own number stands for it, or one made of its name, so that it is the same on every rank.
    """

    def __init__(self, header: Mapping[str, object]) -> None:
        self._described = _descriptions(header)
        self._listed = kineto_groups.listed(header)

    def of(self, given: Event) -> Event:
        """Arguments of one kernel that read the same, without the user's own text."""
        kept: Event = {}
        if (name := _text(given, "Collective name")) in _EXCHANGES:
            kept["Collective name"] = name
        if group := _text(given, "Process Group Name"):
            kept["Process Group Name"] = kineto_groups.number_of(group)
        members = _text(given, "Process Group Ranks")
        if kineto_groups.ranks(members) is None and group in self._listed:
            members = str(list(self._listed[group]))
        if kineto_groups.are_ranks(members):
            kept["Process Group Ranks"] = members
        if (dtype := _text(given, "dtype")) in kineto_groups.TYPES:
            kept["dtype"] = dtype
        described = _text(given, "Process Group Description") or self._described.get(group, "")
        if _purpose(described) != _NOTHING:
            kept["Process Group Description"] = described
        return kept


@cache
def _purpose(description: str) -> int:
    found = (purpose for purpose, pattern in _PURPOSES if pattern.fullmatch(description))
    return next((PURPOSES.index(purpose) for purpose in found), _NOTHING)


def _descriptions(header: Mapping[str, object]) -> dict[str, str]:
    """Name of each process group -> its description."""
    distributed = header.get("distributedInfo")
    listed = distributed.get("pg_config") if isinstance(distributed, dict) else None
    groups = [group for group in listed if isinstance(group, dict)] if isinstance(listed, list) else []
    return {_text(group, "pg_name"): _text(group, "pg_desc") for group in groups}


def _text(given: Event, key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""
