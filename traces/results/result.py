"""A result as facts: what of a document two runs are compared by. Fields are those of the JSON contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Group = Literal["budget", "absent", "moe"]
Value = bool | int | float | str | None | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the ledger; `work_ns` is None in documents that do not say it (before 0.2)."""

    row: str
    group: Group
    wall: str | None
    count: int
    work_ns: int | None
    per_step_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One module in one pass of one layer, over all used steps."""

    layer: int
    module: str
    pass_: str
    count: int
    work_ns: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """Kernels of one name, grid and key; `key` as in the ledger but for `comm.KIND`."""

    name: str
    grid: tuple[int, int, int] | None
    key: str
    count: int
    work_ns: int
    std_ns: int


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a rank. `lengths_ns`: the used ones in order, the one window where there are no steps.

    `source` is `none` where there are no steps: then `lengths_ns` has one entry, and is no step.
    """

    source: str
    what: str
    lengths_ns: tuple[int, ...]
    dropped: tuple[str, ...]
    """Reasons of those left out, one each."""
    slow: tuple[int, ...] = ()
    """Indexes of used steps that are slow, as recorded."""

    @property
    def has_steps(self) -> bool:
        """Whether `lengths_ns` are steps."""
        return self.source != "none"


@dataclass(frozen=True, slots=True)
class Rank:
    """One process on one GPU. `ledger` is None where communication could not be told from compute.

    `budget_ns` by bucket, without the window; a bucket is None where not told. `detected`, `memory`, `sm`,
    `absent_ns`, `a2a`, `timeline` are the document's own sections, as plain values.
    """

    trace: str
    process: int | None
    device: int
    gpu: str | None
    rank: int | None
    steps: Steps
    window_ns: int
    budget_ns: Mapping[str, int | None]
    ledger: tuple[Row, ...] | None
    layers: tuple[LayerRow, ...] | None
    kernels: tuple[Kernel, ...] | None
    kernels_left_out: int
    """Rows of kernels that the document does not list."""
    totals: Mapping[str, Any] | None
    clock_offset_ns: int | None
    detected: Mapping[str, Any]
    memory: Mapping[str, Any]
    sm: Mapping[str, Any]
    absent_ns: Mapping[str, Any] | None
    a2a: Mapping[str, Any] | None
    moe: Mapping[str, Any] | None = None
    timeline: Mapping[str, Any] | None = None
    """One step by stream; None in documents that do not say it (before 0.2)."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What a trace says of itself."""

    name: str
    kind: str
    exporter_version: str | None
    schema: str | None
    gpus: tuple[str | None, ...]
    missing_tables: tuple[str, ...]
    diagnostics: tuple[str, ...]
    perturbation_frac: float | None


@dataclass(frozen=True, slots=True)
class Log:
    """What a training log says. `iterations_ns`: lengths of its last 2,000 iterations at most, without those
    of a start, of warm-up, under a profiler or at a checkpoint; pauses are in it.
    """

    name: str
    iterations_ns: tuple[int, ...]
    versions: Mapping[str, str]
    values: Mapping[str, Any]
    """The document's own section."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings by knob; those whose value is withheld are in `withheld`, not in `settings`."""

    framework: str | None
    legal: bool | None
    settings: Mapping[str, Value]
    said: Mapping[str, str]
    """Where each was said."""
    withheld: frozenset[str]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished document. `ranks` is empty for a configuration judged without a trace."""

    tool_version: str
    guidance: str
    traces: tuple[Trace, ...]
    ranks: tuple[Rank, ...]
    verdict: Mapping[str, Any]
    walls: tuple[Mapping[str, Any], ...]
    fixes: tuple[Mapping[str, Any], ...]
    given: Mapping[str, Value] = field(default_factory=dict)
    configuration: Configuration | None = None
    log: Log | None = None
    throughput: Mapping[str, Any] | None = None
    config_findings: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    redacted: bool = True
