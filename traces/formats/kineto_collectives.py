"""What a PyTorch profiler trace says of collectives: how ranks exchange, in which group, what that is for.

PyTorch writes it beside the operator `record_param_comms` (torch/csrc/profiler/util.cpp), and the profiler
beside the kernel that this operator launched (pytorch/kineto, libkineto/src/output_json.cpp). What a group of
`batch_isend_irecv` launches stands outside of such an operator and has none of it (pytorch/pytorch, issue
194693). Descriptions are the user's own text: they are matched with the words we know and go no further.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np

from traces.columns import EXCHANGES, PURPOSES, Collectives
from traces.formats.kineto_json import Event
from traces.formats.kineto_values import arguments

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


def collectives(kernels: Sequence[Event], header: Mapping[str, object]) -> Collectives | None:
    """What the arguments of each kernel and `distributedInfo` say of its collective; None where nothing."""
    described = _descriptions(header)
    groups: dict[str, int] = {}
    several = arguments(kernels)
    told = [_told(given, described, groups) for given in several]
    columns = np.array(told, dtype=np.int64).reshape(-1, 3)
    if (columns == _NOTHING).all():
        return None
    known = {text for given in several if _purpose(text := _description(given, described)) != _NOTHING}
    exchange, group, purpose = columns.T
    return Collectives(exchange, group, purpose, tuple(sorted(known)))


def _told(given: Event, described: Mapping[str, str], groups: dict[str, int]) -> tuple[int, int, int]:
    """Exchange, group and purpose of one kernel. Older releases describe the group in the header only."""
    exchange = _EXCHANGES.get(_text(given, "Collective name"))
    name = _text(given, "Process Group Name")
    purpose = _purpose(_description(given, described))
    return (
        _NOTHING if exchange is None else EXCHANGES.index(exchange),
        groups.setdefault(name, len(groups)) if name else _NOTHING,
        purpose,
    )


def _description(given: Event, described: Mapping[str, str]) -> str:
    name = _text(given, "Process Group Name")
    return _text(given, "Process Group Description") or described.get(name, "")


class KnownWords:
    """What of collectives' arguments may be written again: known words, and groups by number, not by name."""

    def __init__(self, header: Mapping[str, object]) -> None:
        self._described = _descriptions(header)
        self._groups: dict[str, int] = {}

    def of(self, given: Event) -> Event:
        """Arguments of one kernel that read the same, without the user's own text."""
        kept: Event = {}
        if (name := _text(given, "Collective name")) in _EXCHANGES:
            kept["Collective name"] = name
        if group := _text(given, "Process Group Name"):
            kept["Process Group Name"] = str(self._groups.setdefault(group, len(self._groups)))
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
