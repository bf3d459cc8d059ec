"""What a rank spends its time on, as sets of instants, to be asked of any stretch."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.absent import REASONS, AbsentPieces
from traces.columns import BoolArray, IntArray
from traces.intervals import Spans, subtract, union
from traces.missing import Missing
from traces.steps.found import Steps
from traces.timeline import KEYS, Activities, Bucket, RankTimeline

_STARVED: Final = tuple(reason.startswith("launch_starved.") for reason in REASONS)
_DATA: Final = REASONS.index("launch_starved.data")


@dataclass(frozen=True, slots=True)
class Spent:
    """Instants of compute, of grouped GEMMs, of communication without compute, and of a GPU without either
    for which the host is the reason: `loader` before a step's first kernel, or in a range of a loader, `host`
    all other. None where the recording does not tell why no compute ran.
    """

    compute: Spans
    grouped: Spans
    comm: Spans
    exposed: Spans
    host: Spans | None
    loader: Spans | None


def spent_by(rank: RankTimeline, steps: Steps, absent: AbsentPieces | Missing) -> Spent:
    """Sort the time of a rank."""
    rows = rank.activities
    compute = _union(rows, rows.bucket == Bucket.COMPUTE)
    grouped = (rows.bucket == Bucket.COMPUTE) & (rows.key == KEYS[Bucket.COMPUTE].index("grouped_gemm"))
    comm = _union(rows, rows.bucket == Bucket.COMM)
    exposed = subtract(comm, compute)
    host = loader = None
    if not isinstance(absent, Missing):
        starved = np.array(_STARVED, dtype=np.bool_)[absent.reason]
        at_step = np.isin(absent.kernel, _first_kernels(rows, steps)) | (absent.reason == _DATA)
        host = subtract(union(absent.start_ns[starved & ~at_step], absent.end_ns[starved & ~at_step]), comm)
        loader = subtract(union(absent.start_ns[starved & at_step], absent.end_ns[starved & at_step]), comm)
    return Spent(compute, _union(rows, grouped), comm, exposed, host, loader)


def _union(rows: Activities, which: BoolArray) -> Spans:
    return union(rows.start_ns[which], rows.end_ns[which])


def _first_kernels(rows: Activities, steps: Steps) -> IntArray:
    """The first compute kernel of each recorded step, by place."""
    compute = np.flatnonzero(rows.bucket == Bucket.COMPUTE)
    begins = np.array([step.start_ns for step in steps.recorded], dtype=np.int64)
    at = np.searchsorted(rows.start_ns[compute], begins)
    return compute[at[at < len(compute)]]
