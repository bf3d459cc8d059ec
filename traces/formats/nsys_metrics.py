"""GPU metrics of an nsys export: samples of hardware counters, device-wide.

Two layouts: rows in GPU_METRICS, named by TARGET_INFO_GPU_METRICS; up to 2022.4 one JSON object per
sample in GENERIC_EVENTS.data, numbers as texts. A GPU's id is the low byte of `typeId`, and a
sample covers the time from its stamp on (NVIDIA's recipe gpu_metric_util_map, 2023.3).
"""

import json
from typing import Final

import numpy as np

from traces.arrays import NOWHERE, IntArray, distinct, ints
from traces.columns import NULL, GpuSamples
from traces.formats.nsys_columns import read_present
from traces.formats.sqlite_tables import SqliteTables
from traces.formats.tables import first_told
from traces.groups import places_of_each

METRICS: Final = "GPU_METRICS"
METRIC_NAMES: Final = "TARGET_INFO_GPU_METRICS"
GENERIC: Final = "GENERIC_EVENTS"

_WANTED: Final = ("sm_active", "sm_issue", "tensor_active")
_SPELLINGS: Final = {
    "SM Active": 0,
    "SMs Active": 0,
    "SM Issue": 1,
    "Tensor Active": 2,  # not "Tensor Active / FP16 Active": that pipe is shared with other work
}
_PERCENT: Final = 100


def read_gpu_samples(tables: SqliteTables) -> tuple[GpuSamples, ...]:
    """Samples of each sampled GPU, by GPU id; empty where the export holds none.

    Raises `DamagedTrace` where a table cannot be read.
    """
    read_rows = _metric_rows if tables.columns_of(METRICS) else _generic_rows
    stamps, gpus, metric, percent = read_rows(tables)
    return tuple(
        _of_gpu(gpu, stamps[rows], metric[rows], percent[rows])
        for gpu, rows in places_of_each(gpus)
    )


_Rows = tuple[IntArray, IntArray, IntArray, IntArray]
"""Time, GPU id, place in _WANTED and value in per cent of each value, arrays of shape (n,)."""


def _metric_rows(tables: SqliteTables) -> _Rows:
    """Rows of GPU_METRICS. A metric's id means nothing by itself, and differs between GPUs."""
    named = []
    kinds = {"typeId": int, "metricId": int, "metricName": object}
    for type_id, metric_id, name in tables.typed(METRIC_NAMES, kinds):
        if (place := _place_of(name)) is not None:
            named.append((type_id, metric_id, place))
    ids = distinct(ints(named).reshape(-1, 3)[:, 1]).tolist()
    wanted = {"metricId": ids or [NULL], "value": None}
    column = read_present(
        tables, METRICS, ("typeId", "metricId", "value"), ("timestamp", "rawTimestamp"), only=wanted
    )
    metric = np.full(len(column), -1)
    for type_id, metric_id, place in named:
        metric[(column["typeId"] == type_id) & (column["metricId"] == metric_id)] = place
    stamps = first_told(column["timestamp"], column["rawTimestamp"])
    keep = (metric >= 0) & (stamps != NULL) & (column["value"] != NULL)
    return stamps[keep], column["typeId"][keep] & 0xFF, metric[keep], column["value"][keep]


def _place_of(name: object) -> int | None:
    """Which metric a name means: one quantity comes in several units, and only per cent is meant
    here.
    """
    quantity, bracket, unit = str(name).partition("[")
    if bracket and unit.strip().rstrip("]").strip() != "Throughput %":
        return None
    return _SPELLINGS.get(quantity.strip())


def _generic_rows(tables: SqliteTables) -> _Rows:
    """Rows of GENERIC_EVENTS whose JSON holds SM metrics; their `timestamp` can be NULL."""
    if "data" not in tables.columns_of(GENERIC):
        return (NOWHERE,) * 4
    column = read_present(
        tables, GENERIC, ("typeId",), ("timestamp", "rawTimestamp"), texts=("data",)
    )
    text = column.texts["data"]
    stamps = first_told(column["timestamp"], column["rawTimestamp"])
    by_row = ints([*map(_values_of, text.values), (NULL,) * len(_WANTED)])[text.codes]
    row, metric = np.nonzero((by_row != NULL) & (stamps != NULL)[:, None])
    return stamps[row], column["typeId"][row] & 0xFF, metric, by_row[row, metric]


def _values_of(data: str) -> tuple[int, ...]:
    """The wanted metrics of one JSON object; NULL for those it lacks."""
    values = [NULL] * len(_WANTED)
    try:
        for name, value in json.loads(data).items():
            if (place := _place_of(name)) is not None:
                values[place] = round(float(value))
    except (ValueError, TypeError, AttributeError, OverflowError):  # another event's data
        return (NULL,) * len(_WANTED)
    return tuple(values)


def _of_gpu(gpu: int, stamps: IntArray, metric: IntArray, percent: IntArray) -> GpuSamples:
    start = distinct(stamps)
    values = np.full((len(_WANTED), len(start)), np.nan)
    values[metric, np.searchsorted(start, stamps)] = percent / _PERCENT
    return GpuSamples(gpu, start, _sample_ends(start), *values)


def _sample_ends(start: IntArray) -> IntArray:
    """Each sample lasts one period, or until the next; of one sample alone the period is not
    known.
    """
    if len(start) < 2:
        return start.copy()
    end = start + int(np.median(np.diff(start)))
    end[:-1] = np.minimum(end[:-1], start[1:])
    return end
