"""A large export of nsys in SQLite, of a rank of an MoE run that is made up; the same for the same seed.

Tables, their columns, types and order are those of `nsys export --type sqlite` (schema 3.25). A layer is
forty kernels: attention, router, dispatch, experts, combine. Compute is on stream 7, expert communication on
20, communication of data parallelism on 24, the shared expert on 28. Forward layers are launched by one
thread, backward layers by another; each kernel has a call, and every tenth call launches nothing.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bench.speed.layer import BLOCKS, KERNELS, LAYER, Kernel
from bench.speed.schema import ROWS, TABLES
from traces.arrays import IntArray

_LENGTH: Final = len(LAYER)
_LAYERS: Final = 48
_BATCH: Final = 32 * 2 * _LAYERS
_BEGIN_NS: Final = 1_500_000_000
_PROCESS: Final = 281_476_838_981_632
_THREADS: Final = (_PROCESS + 111, _PROCESS + 222)
_METRICS: Final = 20
_METRIC_TYPE: Final = 2_305_843_009_213_693_953
_KINDS: Final = list(KERNELS)
_CALLS: Final = (
    "cudaLaunchKernel_v7000",
    "cuLaunchKernelEx",
    "cudaEventRecord_v3020",
    "cudaStreamWaitEvent_v3020",
)


def write_export(path: Path, kernels: int, seed: int = 0) -> None:
    """Write an export of so many kernels, with 1.1 calls, 0.4 ranges and two metric samples for each."""
    path.unlink(missing_ok=True)
    export = _Export(sqlite3.connect(path, isolation_level=None), np.random.default_rng(seed))
    export.begin()
    layers = -(-kernels // _LENGTH)
    left = kernels
    for first in range(0, layers, _BATCH):
        batch = export.timed(first, min(_BATCH, layers - first))
        export.add(batch, min(left, len(batch.start_ns)))
        left -= len(batch.start_ns)
    export.end(2 * kernels)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some layers from the number `first` on, arrays of shape (n,), a kernel each."""

    first: int
    kind: IntArray
    stream: IntArray
    start_ns: IntArray
    end_ns: IntArray
    thread: IntArray
    call_ns: IntArray
    call_end_ns: IntArray
    correlation: IntArray


@dataclass(slots=True)
class _Export:
    database: sqlite3.Connection
    random: np.random.Generator
    texts: dict[str, int] = field(default_factory=dict)
    now_ns: int = _BEGIN_NS
    last_call_ns: int = 0
    correlation: int = 1000

    def begin(self) -> None:
        for setting in ("page_size=4096", "synchronous=OFF", "journal_mode=OFF", "locking_mode=EXCLUSIVE"):
            self.database.execute(f"PRAGMA {setting}")
        self.database.execute("BEGIN")
        for table, columns in TABLES.items():
            self.database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")

    def end(self, samples: int) -> None:
        self._add_samples(samples // _METRICS)
        for table, rows in ROWS.items():
            self._insert(table, rows)
        metrics = [(_METRIC_TYPE, 0, "General Metrics", one, f"metric {one}") for one in range(_METRICS)]
        self._insert("TARGET_INFO_GPU_METRICS", metrics)
        self._insert("StringIds", [(number, text) for text, number in self.texts.items()])
        self.database.execute("COMMIT")
        self.database.close()

    def timed(self, first: int, layers: int) -> _Batch:
        """The next layers: when their kernels run and when they are launched."""
        kind = np.tile([_KINDS.index(name) for name in LAYER], layers)
        stream = np.array([KERNELS[name].stream for name in _KINDS])[kind]
        count, place = len(kind), np.arange(len(kind))
        mean = np.array([KERNELS[name].mean_ns for name in _KINDS], dtype=float)[kind]
        took_ns = (mean * self.random.lognormal(-0.02, 0.2, count)).astype(np.int64) + 900
        gap_ns = self.random.choice([320, 700, 1300, 9000], count, p=[0.7, 0.2, 0.08, 0.02])
        on_main_ns = np.where(stream == 7, took_ns + gap_ns, 0)
        start_ns = self.now_ns + np.cumsum(on_main_ns) - on_main_ns
        for side in (20, 24, 28):
            _beside(side, stream, start_ns, took_ns)
        self.now_ns = int(start_ns[-1] + on_main_ns[-1] + 50_000)
        backward = (first + place // _LENGTH) // _LAYERS % 2
        # Calls run 20 us to 2 ms before their kernels; those of a thread never go back in time.
        ahead_ns = 20_000 + (1 + np.sin(place / 5000)) * 1_000_000
        earliest = (start_ns - ahead_ns - 1600 * place).astype(np.int64)
        call_ns = np.minimum.accumulate(earliest[::-1])[::-1] + 1600 * place
        call_ns = np.maximum(call_ns, self.last_call_ns + 1600 * (place + 1))
        self.last_call_ns = int(call_ns[-1])
        correlation = self.correlation + place + place // 10 + 1
        self.correlation = int(correlation[-1]) + 2
        thread = np.where(backward == 0, *_THREADS)
        call_end_ns = call_ns + self.random.integers(400, 900, count)
        return _Batch(
            first, kind, stream, start_ns, start_ns + took_ns, thread, call_ns, call_end_ns, correlation
        )

    def add(self, batch: _Batch, count: int) -> None:
        """Write the first `count` kernels of a batch, their calls and their ranges."""
        self._add_kernels(batch, count)
        self._add_calls(batch, count)
        if layers := count // _LENGTH:
            self._add_ranges(batch, layers)

    def _add_kernels(self, batch: _Batch, count: int) -> None:
        order = np.argsort(batch.start_ns[:count], kind="stable")
        facts = np.array([self._facts(KERNELS[name]) for name in _KINDS])[batch.kind[order]]
        times = (batch.start_ns[order], batch.end_ns[order], batch.stream[order], batch.correlation[order])
        rows = zip(*(values.tolist() for values in (*times, *facts.T)), strict=True)
        self._insert(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            (
                (
                    *(start, end, 0, 1, stream, number, _PROCESS, *names, 1, 0, registers),
                    *(*shape, 0, shared, 0, 234_881_024, number, 233_472, None, 0),
                )
                for start, end, stream, number, *names, registers, shared, gx, gy, gz, bx, by, bz in rows
                for shape in ((gx, gy, gz, bx, by, bz),)
            ),
        )

    def _facts(self, kernel: Kernel) -> tuple[int, ...]:
        names = (kernel.name, kernel.short, f"_Z{kernel.short}")
        sizes = (kernel.registers, kernel.shared_bytes, *kernel.grid, *kernel.block)
        return (*map(self._text, names), *sizes)

    def _add_calls(self, batch: _Batch, count: int) -> None:
        launch, cluster, record, wait = map(self._text, _CALLS)
        tenth = np.arange(0, count, 10)
        rows = np.stack(
            [
                np.concatenate([batch.call_ns[:count], batch.call_ns[tenth] - 250]),
                np.concatenate([batch.call_end_ns[:count], batch.call_ns[tenth] - 50]),
                np.zeros(count + len(tenth), dtype=np.int64),
                np.concatenate([batch.thread[:count], batch.thread[tenth]]),
                np.concatenate([batch.correlation[:count], batch.correlation[tenth] - 1]),
                np.concatenate(
                    [np.where(batch.kind[:count] % 3, launch, cluster), np.where(tenth % 20, wait, record)]
                ),
            ],
            axis=1,
        )
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        self._insert("CUPTI_ACTIVITY_KIND_RUNTIME", ((*row, 0, None) for row in rows.tolist()))

    def _add_ranges(self, batch: _Batch, layers: int) -> None:
        """A range a layer, one a block of it, and one of plain text around every four kernels."""
        shape = (layers, _LENGTH)
        begin = batch.call_ns[: layers * _LENGTH].reshape(shape) - 300
        end = batch.call_end_ns[: layers * _LENGTH].reshape(shape) + 100
        numbers = (batch.first + np.arange(layers)) % _LAYERS
        layer_text = np.array([self._text(f"layer_{number}") for number in range(_LAYERS)])[numbers]
        parts = [(begin[:, 0] - 60, end[:, -1] + 60, layer_text)]
        for name, first, last in BLOCKS:
            parts.append((begin[:, first] - 40, end[:, last - 1] + 40, np.full(layers, self._text(name))))
        for place in range(0, _LENGTH, 4):
            parts.append((begin[:, place] - 20, end[:, place + 3] + 20, np.full(layers, -1 - place)))
        thread = np.tile(batch.thread[: layers * _LENGTH : _LENGTH], len(parts))
        starts, ends, texts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((-ends, starts))
        rows = zip(*(values[order].tolist() for values in (starts, ends, thread, texts)), strict=True)
        self._insert(
            "NVTX_EVENTS",
            (
                (
                    start,
                    end,
                    59,
                    None,
                    None,
                    None,
                    _operation(text),
                    tid,
                    None,
                    text if text >= 0 else None,
                    0,
                )
                + (None,) * 9
                for start, end, tid, text in rows
            ),
        )

    def _add_samples(self, ticks: int) -> None:
        every_ns = max((self.now_ns - _BEGIN_NS) // max(ticks, 1), 1)
        for first in range(0, ticks, 20_000):
            some = np.arange(first, min(first + 20_000, ticks))
            times = np.repeat(_BEGIN_NS + some * every_ns, _METRICS).tolist()
            values = self.random.integers(0, 101, len(times)).tolist()
            numbers = np.tile(np.arange(_METRICS), len(some)).tolist()
            kinds = [_METRIC_TYPE] * len(times)
            self._insert("GPU_METRICS", zip(times, kinds, numbers, values, strict=True))

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _insert(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        marks = ",".join("?" * len(TABLES[table]))
        self.database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _operation(text: int) -> str | None:
    """The plain text of a range; None for one whose text stands in the table of texts."""
    return f"aten::op_{LAYER[-1 - text]}, op_id = {-1 - text}" if text < 0 else None


def _beside(stream: int, streams: IntArray, start_ns: IntArray, took_ns: IntArray) -> None:
    """Let kernels of a side stream start where compute stands, without running into each other."""
    mine = np.flatnonzero(streams == stream)
    if stream == 28:  # two of the shared expert, one right after the other
        start_ns[mine[1::2]] = start_ns[mine[::2]] + took_ns[mine[::2]] + 500
    room_ns = np.diff(start_ns[mine], append=start_ns[-1] + 400_000)
    took_ns[mine] = np.maximum(np.minimum(took_ns[mine], room_ns - 300), 500)


if __name__ == "__main__":
    write_export(Path(sys.argv[1]), int(sys.argv[2]))
