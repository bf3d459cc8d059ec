"""GPU work of a PyTorch profiler trace: kernels, copies, memsets."""

from collections.abc import Mapping

import numpy as np

from traces.columns import COPY_KINDS, NULL, Copies, GpuRows, IntArray, Kernels, end_to_end
from traces.formats import kineto_schema as schema
from traces.formats.kineto_rows import Table, table
from traces.formats.kineto_values import first_told
from traces.launch_shapes import distinct_shapes


def kernels(found: Table, process_gid: int) -> tuple[Kernels, tuple[str, ...]]:
    """Kernels and their names.

    The profiler adds static and dynamic shared memory up. The sum stands as static, and dynamic is 0: what is
    computed from both comes out right, only their split is not told.
    """
    name, texts = found.texts["name"]
    node, shared = found["graph_node_id"], found["shared_memory"]
    dynamic = np.where(shared == NULL, NULL, 0)
    shape, shapes = distinct_shapes(
        [*found["grid"].T], [*found["block"].T], found["registers_per_thread"], shared, dynamic
    )
    in_graph = (node != NULL) & (node != 0)  # CUPTI: 0 outside graphs
    return Kernels(_rows(found, process_gid), name, in_graph, shape, shapes), texts


def copies(memcpy: Table, memset: Table, process_gid: int) -> Copies:
    """Copies, then memsets; the kind of a copy stands in its name."""
    place = {kind: index for index, kind in enumerate(COPY_KINDS)}
    name, texts = memcpy.texts["name"]
    kind_of_name = [place[_copy_kind(text)] for text in (*texts, "")]  # without a name: -1, the last
    of_memcpy = np.array(kind_of_name, dtype=np.int64)[name]
    memory_of_name = np.array([_copy_source(text) for text in (*texts, "")], dtype=np.int64)
    return Copies(
        rows=end_to_end(_rows(memcpy, process_gid), _rows(memset, process_gid)),
        kind=np.concatenate((of_memcpy, np.full(len(memset), place["memset"], dtype=np.int64))),
        size_bytes=np.concatenate((memcpy["bytes"], memset["bytes"])),
        source=np.concatenate((memory_of_name[name], np.full(len(memset), NULL))),
    )


def no_rows() -> GpuRows:
    """Rows of whole graph replays: the profiler records their kernels one by one."""
    return _rows(table((), schema.KERNELS), NULL)


def placed(tables: Mapping[str, Table]) -> tuple[dict[str, Table], int]:
    """GPU tables without the rows that name no device, and how many those were."""
    found = {name: tables[name] for name in (schema.KERNELS, schema.MEMCPY, schema.MEMSET)}
    kept = {name: each.only(device_ids(each) != NULL) for name, each in found.items()}
    return kept, sum(len(each) - len(kept[name]) for name, each in found.items())


def _rows(found: Table, process_gid: int) -> GpuRows:
    return GpuRows(
        start_ns=found["start_ns"],
        end_ns=found["end_ns"],
        device_id=device_ids(found),
        stream_id=first_told(found["stream"], found["tid"]),
        correlation_id=found["correlation"],
        process_gid=np.full(len(found), process_gid, dtype=np.int64),
    )


def device_ids(found: Table) -> IntArray:
    """CUDA ordinal: the argument, for copies between GPUs the one that copies, else the row's process."""
    return first_told(found["device"], found["in_device"], found["pid"])


def _copy_kind(name: str) -> str:
    words = name.split(maxsplit=2)
    return schema.COPY_KIND.get(words[1], "memcpy_unknown") if len(words) > 1 else "memcpy_unknown"


def _copy_source(name: str) -> int:
    words = name.split(maxsplit=3)
    return schema.COPY_SOURCE.get(words[2], NULL) if len(words) > 2 else NULL
