"""What a training log says. Lines are counted from 1; no text of the log is kept but what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from traces.settings.settings import Settings

Stage = Literal["setup", "forward", "backward", "optimizer", "optimizer_state", "graph_capture", "unknown"]


@dataclass(frozen=True, slots=True)
class Iteration:
    """One logged iteration: its number, how long it took, and what the trainer says it reached.

    `tflops_per_gpu` is the trainer's own model TFLOP/s; None where it says none.
    """

    index: int
    length_ns: int
    line: int
    tflops_per_gpu: float | None = None
    tokens_per_s_per_gpu: float | None = None


@dataclass(frozen=True, slots=True)
class LoggedMemory:
    """Memory that a rank reports (`rank` None: not said), in bytes; a figure it does not say is None."""

    line: int
    rank: int | None = None
    allocated_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """One out-of-memory error and the stage it happened in."""

    line: int
    stage: Stage
    rank: int | None = None
    capacity_bytes: int | None = None
    reserved_bytes: int | None = None
    allocated_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A line that one of our patterns knows: the pattern's id, the line, and its named groups."""

    id: str
    line: int
    said: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """A whole log.

    `versions`: by package (`core`, `bridge`, `torch`, `te`, `nccl`, `cuda`, `python`). `settings`: those of
    its `arguments` block or dumped configuration, None where it holds none. `skipped`: lines that
    could not be read as text. `stopped`: the log ends without a word of its end.
    """

    name: str
    line_count: int
    iterations: tuple[Iteration, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Settings | None = None
    memory: tuple[LoggedMemory, ...] = ()
    out_of_memory: tuple[OutOfMemory, ...] = ()
    messages: tuple[Message, ...] = ()
    skipped: tuple[int, ...] = ()
    stopped: bool | None = None
