"""Rows of GPU work as recorded: which have times, whose they are where a row does not say."""

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct, summed
from traces.columns import NULL, PROCESS_BITS, Columns, GpuRows


def known_device(device_id: IntArray) -> tuple[IntArray, BoolArray]:
    """Device of each row, and which have one; a row without belongs to the only device there is."""
    candidates = distinct(device_id[device_id != NULL])
    only = np.full(len(device_id), candidates[0]) if len(candidates) == 1 else device_id
    return only, only != NULL


def known_process(process_gid: IntArray, columns: Columns) -> IntArray:
    """Process of each row; a row without one belongs to the only process there is, if there is only
    one.
    """
    known = np.concatenate((distinct(process_gid), distinct(columns.calls.thread_gid)))
    candidates = distinct(known[known != NULL] & PROCESS_BITS)
    if len(candidates) == 1:
        return np.where(process_gid == NULL, candidates[0], process_gid)
    return process_gid


def checked_times(rows: GpuRows) -> tuple[BoolArray, IntArray, list[str]]:
    """Which rows have times, their ends never before their starts, and what was amiss.

    CUPTI writes start = end = 0 where it has no times (CUPTI documentation, CUpti_ActivityKernel);
    an end before its start is work that had not ended when the recording did.
    """
    untimed = (
        (rows.start_ns == NULL)
        | (rows.end_ns == NULL)
        | ((rows.start_ns == 0) & (rows.end_ns == 0))
    )
    unfinished = ~untimed & (rows.end_ns < rows.start_ns)
    warnings = []
    if count := summed(untimed):
        warnings.append(f"GPU rows without times, left out: {count}")
    if count := summed(unfinished):
        warnings.append(f"GPU rows that end before they start, counted as empty: {count}")
    return ~untimed, np.maximum(rows.start_ns, rows.end_ns), warnings
