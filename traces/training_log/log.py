"""What a training log says. Lines are counted from 1; no text of the log is kept but what was asked
for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from traces.frozen import frozen
from traces.settings.settings import Settings

Stage = Literal[
    "setup", "forward", "backward", "optimizer", "optimizer_state", "graph_capture", "unknown"
]


def holds_one(text: str, words: Iterable[str]) -> bool:
    """Whether one of these stands in a line."""
    return any(word in text for word in words)


@frozen
class Iteration:
    """One logged iteration: its number, how long it took, and what the trainer says it reached.

    `length_ns` is the mean over the iterations since the line before, where not every one is
    logged. `index` is the line's place from 1 where the log numbers none (Megatron-Bridge's `Step
    Time` lines alone). `tflops_per_gpu` is the trainer's own model TFLOP/s; None where it says
    none, or 0 as Megatron-Bridge 0.2 does for hybrid models. `global_batch_size` counts samples.
    """

    index: int
    length_ns: int
    line: int
    tflops_per_gpu: float | None = None
    tokens_per_s_per_gpu: float | None = None
    global_batch_size: int | None = None


Iterations = tuple[Iteration, ...]


@frozen
class LoggedMemory:
    """Memory that a rank reports (`rank` None: not said), in bytes; a figure it does not say is
    None.

    `inactive_bytes`: in split blocks that nobody uses and that cannot be given back: fragments.
    """

    line: int
    rank: int | None = None
    allocated_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    inactive_bytes: int | None = None


@frozen
class OutOfMemory:
    """One out-of-memory error and the stage it happened in.

    `reserved_bytes`: all that PyTorch holds, allocated or not; `unallocated_bytes`: what of it is
    not. `graph_pool_bytes`: the part of the allocated in private pools, such as those of CUDA
    graphs. `device` is CUDA's number on its node, not a rank. `others_bytes`: of other processes on
    the GPU. `by_library`: NCCL, cuBLAS or cuDNN asked, and not PyTorch, which keeps what it freed.
    """

    line: int
    stage: Stage
    rank: int | None = None
    capacity_bytes: int | None = None
    reserved_bytes: int | None = None
    allocated_bytes: int | None = None
    unallocated_bytes: int | None = None
    requested_bytes: int | None = None
    free_bytes: int | None = None
    graph_pool_bytes: int | None = None
    device: int | None = None
    others_bytes: int | None = None
    by_library: bool = False

    @property
    def is_elsewhere(self) -> bool:
        """Whether it would have fitted without what other processes hold, and not in one piece of
        what PyTorch keeps.
        """
        match self.requested_bytes, self.free_bytes, self.others_bytes:
            case int(asked), int(free), int(others):
                return asked <= free + others and not self.is_fragmented
        return False

    @property
    def is_fragmented(self) -> bool:
        """Whether what was reserved and not allocated would have held it."""
        match self.unallocated_bytes, self.requested_bytes:
            case int(unallocated), int(asked):
                return unallocated >= asked
        return False


@frozen
class Message:
    """A line that one of our patterns knows: the pattern's id, the line, and its named groups.

    Groups hold numbers, versions, or words that the pattern lists: nothing else of a line is kept.
    """

    id: str
    line: int
    said: Mapping[str, str] = field(default_factory=dict)


@frozen
class TrainingLog:
    """A whole log.

    `versions`: by package (`core`, `bridge`, `torch`, `te`, `nccl`, `nvshmem`, `deepep`, `peft`,
    `deepspeed`, `transformers`, `torchtitan`, `cuda`, `driver`, `python`, `container`). `settings`:
    those of its `arguments` block or of Megatron-Bridge's configuration summary, None where it
    holds neither; not shown in `repr`, as values may be paths. `skipped`: the first lines that
    could not be read as text or were too long, `skipped_count` how many there were. `stopped`: the
    log ends without a word of its end, neither a last iteration nor an error, as an excerpt does
    too; None where training never began in it. `planned_iterations`: how many the run was to make.
    `unknown_error`: its first error, where that is none of the lines that we know. `loading_fracs`:
    parts of a step that it waited for data, as trainers print them; `batch_ns`: how long making a
    batch took, where a timer prints that. `figures`: what lines of steps print, by the keys of
    step_lines.toml: the first and the last.
    """

    name: str
    line_count: int
    iterations: Iterations = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Settings | None = field(default=None, repr=False)
    memory: tuple[LoggedMemory, ...] = ()
    out_of_memory: tuple[OutOfMemory, ...] = ()
    messages: tuple[Message, ...] = ()
    skipped: tuple[int, ...] = ()
    stopped: bool | None = None
    theoretical: tuple[int, ...] = ()
    skipped_count: int = 0
    planned_iterations: int | None = None
    unknown_error: Message | None = None
    loading_fracs: tuple[float, ...] = ()
    batch_ns: tuple[int, ...] = ()
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def those(self, *ids: str) -> Iterator[Message]:
        return (message for message in self.messages if message.id in ids)

    @property
    def own_out_of_memory(self) -> tuple[OutOfMemory, ...]:
        """Errors that the run's own memory makes."""
        return tuple(error for error in self.out_of_memory if not error.is_elsewhere)

    def first(self, *ids: str) -> Message | None:
        return next(self.those(*ids), None)
