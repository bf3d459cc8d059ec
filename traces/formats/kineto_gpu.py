"""GPU work of a PyTorch profiler trace: kernels, copies, memsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traces.columns import COPY_KINDS, NULL, Copies, GpuRows, IntArray, Kernels, end_to_end
from traces.formats import kineto_schema as schema
from traces.formats.kineto_json import Event
from traces.formats.kineto_values import (
    argument,
    arguments,
    column,
    field,
    first_told,
    names,
    times_ns,
    whole,
)

_NO_SHAPE = (NULL, NULL, NULL)


def kernels(events: Sequence[Event], process_gid: int) -> tuple[Kernels, tuple[str, ...]]:
    """Kernels and their names.

    The profiler adds static and dynamic shared memory up. The sum stands as static, and dynamic is 0: what is
    computed from both comes out right, only their split is not told.
    """
    given = arguments(events)
    name, texts = names(events)
    node = argument(given, "graph node id")
    shared = argument(given, "shared memory")
    found = Kernels(
        rows=_rows(events, given, process_gid),
        name=name,
        graph_node_id=np.where(node == 0, NULL, node),  # CUPTI: 0 outside graphs
        grid=_shapes(given, "grid"),
        block=_shapes(given, "block"),
        registers=argument(given, "registers per thread"),
        static_shared_bytes=shared,
        dynamic_shared_bytes=np.where(shared == NULL, NULL, 0),
    )
    return found, texts


def copies(memcpy: Sequence[Event], memset: Sequence[Event], process_gid: int) -> Copies:
    """Copies, then memsets; the kind of a copy stands in its name."""
    place = {kind: index for index, kind in enumerate(COPY_KINDS)}
    name, texts = names(memcpy)
    kind_of_name = [place[_copy_kind(text)] for text in (*texts, "")]  # without a name: -1, the last
    of_memcpy = np.array(kind_of_name, dtype=np.int64)[name]
    given, given_set = arguments(memcpy), arguments(memset)
    return Copies(
        rows=end_to_end(_rows(memcpy, given, process_gid), _rows(memset, given_set, process_gid)),
        kind=np.concatenate((of_memcpy, np.full(len(memset), place["memset"], dtype=np.int64))),
        size_bytes=np.concatenate((argument(given, "bytes"), argument(given_set, "bytes"))),
    )


def no_rows() -> GpuRows:
    """Rows of whole graph replays: the profiler records their kernels one by one."""
    return _rows((), (), NULL)


def placed(tables: Mapping[str, list[Event]]) -> tuple[dict[str, list[Event]], int]:
    """GPU tables without the rows that name no device, and how many those were."""
    kept, left_out = {}, 0
    for table in (schema.KERNELS, schema.MEMCPY, schema.MEMSET):
        events = tables.get(table, [])
        known = (_devices(events, arguments(events)) != NULL).tolist()
        kept[table] = [event for event, has_device in zip(events, known, strict=True) if has_device]
        left_out += len(events) - len(kept[table])
    return kept, left_out


def _rows(events: Sequence[Event], given: Sequence[Event], process_gid: int) -> GpuRows:
    start_ns, end_ns = times_ns(events)
    return GpuRows(
        start_ns=start_ns,
        end_ns=end_ns,
        device_id=_devices(events, given),
        stream_id=_streams(events, given),
        correlation_id=argument(given, "correlation"),
        process_gid=np.full(len(events), process_gid, dtype=np.int64),
    )


def _devices(events: Sequence[Event], given: Sequence[Event]) -> IntArray:
    """CUDA ordinal: the argument, for copies between GPUs the one that copies, else the row's process."""
    return first_told(argument(given, "device"), argument(given, "inDevice"), field(events, "pid"))


def _streams(events: Sequence[Event], given: Sequence[Event]) -> IntArray:
    """Stream: the argument, else the row's thread, which the first releases wrote as "stream 7"."""
    threads = [event.get("tid") for event in events]
    bare = [tid.removeprefix("stream ") if isinstance(tid, str) else tid for tid in threads]
    return first_told(argument(given, "stream"), column(bare))


def _shapes(given: Sequence[Event], key: str) -> IntArray:
    shapes = [one.get(key) for one in given]
    triples = [
        [whole(part) for part in shape] if isinstance(shape, list) and len(shape) == 3 else _NO_SHAPE
        for shape in shapes
    ]
    return np.array(triples, dtype=np.int64).reshape(-1, 3)


def _copy_kind(name: str) -> str:
    words = name.split(maxsplit=2)
    return schema.COPY_KIND.get(words[1], "memcpy_unknown") if len(words) > 1 else "memcpy_unknown"
