"""Rows of the MoE ledger: what each module takes in each pass, of all layers together and of each layer."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traces.account.absent import REASONS, AbsentPieces
from traces.columns import BoolArray, IntArray
from traces.intervals import Spans, covered_ns, intersect, join, subtract, union
from traces.measure.ledger_steps import Borders, cut_at, per_step_ns
from traces.measure.moe.layers import steps_at
from traces.measure.moe.modules import MODULES, Membership
from traces.measure.moe.passes import KINDS, Kind
from traces.missing import Missing
from traces.resolve.resolution import UNTOLD
from traces.sections.rank import LayerRow, MoeRow
from traces.timeline import Activities, Bucket

TOKEN_SYNC = REASONS.index("launch_starved.token_count_sync")


@dataclass(frozen=True, slots=True)
class Measured:
    """What rows are added up from."""

    rows: Activities
    windows: Spans
    borders: Borders
    absent: AbsentPieces | Missing

    def of(self, which: BoolArray) -> Spans:
        """Instants in the windows at which any of the activities, a mask of shape (n,), runs."""
        return intersect(union(self.rows.start_ns[which], self.rows.end_ns[which]), self.windows)


def moe_rows(measured: Measured, members: Membership, kind_of_rest: IntArray) -> tuple[MoeRow, ...]:
    """Rows with anything in them, module after module. `kind_of_rest`: the kind of every activity, (n,).

    `count`: activities with time in the windows; `work_ns`: their sum; `wall_ns`: their union, which
    `per_step_ns` splits by used step (one entry where there are no steps). `exposed_ns`: the part of that
    union in which no compute ran, 0 for compute. `blocking_ns`: time without compute that the account lays on
    these activities; `host_wait_ns`: time in which the host kept the GPU waiting behind a read of token
    counts.
    """
    rows = measured.rows
    compute = rows.bucket == Bucket.COMPUTE
    work_ns = covered_ns(rows.start_ns, rows.end_ns, measured.windows)
    not_compute = subtract(measured.windows, measured.of(compute))
    blocking = _blocking(measured)
    waits = _host_waits(measured, np.where(members.kind == UNTOLD, kind_of_rest, members.kind))
    result = []
    for module, kind, mine in _groups(members, work_ns > 0):
        held = measured.of(mine)
        sync = MODULES[module] == "preprocess_and_token_sync"
        result.append(
            MoeRow(
                MODULES[module],
                KINDS[kind],
                int(mine.sum()),
                int(work_ns[mine].sum()),
                held.total_ns,
                intersect(measured.of(mine & ~compute), not_compute).total_ns,
                blocking if isinstance(blocking, Missing) else int(blocking[mine].sum()),
                waits if isinstance(waits, Missing) else int(waits[kind]) * sync,
                tuple(per_step_ns(held, measured.borders).tolist()),
            )
        )
    return tuple(result)


def layer_rows(measured: Measured, members: Membership, layer: IntArray) -> tuple[LayerRow, ...]:
    """Rows of each layer. `layer`: of each activity, shape (n,), `UNTOLD` where none."""
    rows = measured.rows
    work_ns = covered_ns(rows.start_ns, rows.end_ns, measured.windows)
    mine = np.flatnonzero((members.module != UNTOLD) & (layer != UNTOLD) & (work_ns > 0))
    keys = np.stack((members.kind[mine], members.module[mine], layer[mine]))
    order = np.lexsort(keys)
    mine, keys = mine[order], keys[:, order]
    first = np.flatnonzero(np.concatenate(([True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)))[: len(mine)])
    result = []
    for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(mine)], strict=True):
        group = mine[begin:end]
        held = intersect(union(rows.start_ns[group], rows.end_ns[group]), measured.windows)
        kind, module, number = keys[:, begin].tolist()
        work = int(work_ns[group].sum())
        result.append(LayerRow(number, MODULES[module], KINDS[kind], len(group), work, held.total_ns))
    return tuple(result)


def expert_work(
    measured: Measured, members: Membership, layer: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Used step, layer and time of the experts' GEMMs, in that order. `layer`: as in `layer_rows`."""
    rows = measured.rows
    step = steps_at(measured.borders, rows.start_ns)
    mine = (step != UNTOLD) & (layer != UNTOLD) & (members.module == MODULES.index("expert_gemm"))
    cell, place = np.unique(np.stack((step[mine], layer[mine])), axis=1, return_inverse=True)
    work_ns = np.zeros(cell.shape[1], dtype=np.int64)
    np.add.at(work_ns, place.reshape(-1), (rows.end_ns - rows.start_ns)[mine])
    return cell[0].astype(np.int64), cell[1].astype(np.int64), work_ns


def tax_spans(measured: Measured, members: Membership) -> Spans:
    """Instants that exist only because tokens are routed; see `measure_moe`."""
    experts = [MODULES.index(name) for name in ("expert_gemm", "expert_activation", "shared_expert")]
    taxed = (members.module != UNTOLD) & ~np.isin(members.module, experts)
    held = measured.of(taxed)
    if not isinstance(absent := measured.absent, Missing):
        sync = absent.reason == TOKEN_SYNC
        waited = union(absent.start_ns[sync], absent.end_ns[sync])
        held = join(held, intersect(waited, measured.windows))
    return subtract(held, measured.of((measured.rows.bucket == Bucket.COMPUTE) & ~taxed))


def _groups(members: Membership, there: BoolArray) -> Iterator[tuple[int, int, BoolArray]]:
    for module in range(len(MODULES)):
        of_module = there & (members.module == module)
        for kind in Kind:
            mine = of_module & (members.kind == kind)
            if mine.any():
                yield module, int(kind), mine


def _blocking(measured: Measured) -> IntArray | Missing:
    """Of each activity the time without compute that waited for it, shape (n,)."""
    if isinstance(absent := measured.absent, Missing):
        return absent
    pieces = cut_at(absent.start_ns, absent.end_ns, measured.borders)
    work = absent.work[pieces.of]
    result = np.zeros(len(measured.rows), dtype=np.int64)
    np.add.at(result, work[work >= 0], (pieces.end_ns - pieces.start_ns)[work >= 0])
    return result


def _host_waits(measured: Measured, kind: IntArray) -> IntArray | Missing:
    """Time behind reads of token counts by the kind of the kernel that came late, shape (kinds,)."""
    if isinstance(absent := measured.absent, Missing):
        return absent
    sync = np.flatnonzero(absent.reason == TOKEN_SYNC)
    pieces = cut_at(absent.start_ns[sync], absent.end_ns[sync], measured.borders)
    result = np.zeros(len(Kind), dtype=np.int64)
    np.add.at(result, kind[absent.kernel[sync]][pieces.of], pieces.end_ns - pieces.start_ns)
    return result
