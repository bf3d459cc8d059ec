"""Memory that trainers report, PyTorch's out-of-memory errors, and the stage of training each
happened in.

Megatron-LM's MB are 1024 x 1024 bytes (report_memory in megatron/training/utils.py of core_v0.12.0
and megatron/training/utils/common_utils.py at d98e8a64), Megatron-Bridge's gigabytes are 1e9 bytes
(report_memory in training/utils/train_utils.py, v0.2 to 067f987d); both call 1024 x 1024 bytes MB
in theoretical footprints. PyTorch's sizes are binary (c10/cuda/CUDACachingAllocator.cpp).

A traceback's frames are names of functions: of Megatron-LM (megatron/training/training.py,
core/optimizer, core/pipeline_parallel, core/transformer/cuda_graphs.py; core_v0.12.0 to d98e8a64),
of Megatron-Bridge (training/setup.py, train.py), of PyTorch and of Transformer Engine. Recompute
runs a forward inside a backward and optimizers make their state inside a step, so the rarer stage
of those passed through counts.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import sub
from typing import Final

from traces.frozen import frozen
from traces.missing import of_known
from traces.patterns import Pattern, compiled
from traces.training_log.iterations import KEPT
from traces.training_log.log import LoggedMemory, OutOfMemory, Stage, TrainingLog, holds_one

_FRAME: Final = compiled(r'File "([^"]*)",(?: line [0-9]+,)? in (\w+)')
_RANK: Final = compiled(r"(?i)^[^\"]{0,120}?\brank ?([0-9]{1,7})\b|^ *([0-9]{1,7}): ")
_STAGES: Final[Mapping[Stage, Pattern]] = {
    "graph_capture": compiled(
        r" (?:_?create_cudagraphs|create_(?:fwd|bwd)_graph|_?make_graphed_callables|capture_begin"
        r"|capture_end|cuda_graph_capture|_start_capturing|_get_cuda_graph_input_data)$"
        r"|cuda/graphs\.py "
    ),
    "optimizer_state": compiled(
        r" (?:_init_group|_?initialize_state|init_state_fn"
        r"|_init_optimizer_states_with_dummy_values)$"
    ),
    "optimizer": compiled(r" (?:step_with_ready_grads|prepare_grads)$|optim\w*/.* step$"),
    "backward": compiled(
        r" (?:backward_step\w*|custom_backward|run_backward|_engine_run_backward"
        r"|finalize_model_grads)$"
        r"|(?:autograd/__init__|torch/_tensor|pipeline_parallel/utils)\.py _?backward$"
    ),
    "forward": compiled(
        r" (?:forward_step\w*|forward_backward_step|forward|_call_impl|compute_loss|cross_entropy)$"
    ),
    "setup": compiled(
        r" (?:setup_model_and_optimizer|_build_distributed_model|get_model|get_megatron_optimizer"
        r"|initialize_megatron|load_checkpoint|build_model|setup)$"
    ),
}
"""Searched for in `path name`; a later stage counts only where no earlier one does."""


def rank_of(text: str) -> int | None:
    """The rank that a line's prefix names: `[rank3]:` of torchrun, `3: ` of srun; None where it has
    none.
    """
    match = _RANK.match(text)
    if not match:
        return None
    return int(match[1] or match[2])


class Tracebacks:
    """The stages passed through by each rank's latest traceback."""

    def __init__(self) -> None:
        self._passed = dict[int | None, set[Stage]]()

    def begin(self, text: str) -> None:
        self._passed.pop(rank_of(text), None)

    def frame(self, text: str) -> None:
        match = _FRAME.search(text)
        if not match:
            return
        place = f"{match[1]} {match[2]}"
        for stage, names in _STAGES.items():
            if names.search(place):
                rank = rank_of(text)
                if rank in self._passed or len(self._passed) < KEPT.value:
                    self._passed.setdefault(rank, set()).add(stage)
                return

    def end(self, text: str) -> Stage:
        """An error ends the traceback of its rank: the stage it happened in."""
        passed = self._passed.pop(rank_of(text), set())
        for stage in _STAGES:
            if stage in passed:
                return stage
        return "unknown"


WORDS: Final = (
    b"memory",
    b"has a total capac",
    b"Tried to allocate",
    b"Traceback (most recent",
    b'File "',
    b"OutOfMemory",
    b"OUT_OF_MEMORY",
    b"ErrorMemoryAllocation",
    b"_ALLOC_FAILED",
)
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,30})?(?:e-[0-9]{1,2})?"
_REPORT: Final = compiled(r"\[Rank ([0-9]{1,7})\].* memory \((MB|GB)\) \|")
_UNIT_BYTES: Final = {"MB": 1024.0**2, "GB": 1e9}
_FIELDS: Final = {
    "allocated": "allocated_bytes",
    "max allocated": "peak_allocated_bytes",
    "reserved": "reserved_bytes",
    "max reserved": "peak_reserved_bytes",
    "mem-allocated-gigabytes": "allocated_bytes",
    "mem-max-allocated-gigabytes": "peak_allocated_bytes",
    "mem-reserved-gigabytes": "reserved_bytes",
    "mem-max-reserved-gigabytes": "peak_reserved_bytes",
    "mem-inactive-gigabytes": "inactive_bytes",
}
_PART: Final = compiled(rf"\| ({'|'.join(_FIELDS)}): ({_NUMBER})(?: |$)")
_THEORETICAL: Final = compiled(rf"Theoretical memory footprints: weight and optimizer={_NUMBER} MB")

_OUT: Final = compiled(
    r"(?:CUDA|HIP) out of memory|(?:CUDA|HIP) error: out of memory|Cuda failure [0-9 ]*'out of "
    r"memory'"
    r"|Triton Error \[(?:CUDA|HIP)\]: out of memory|OutOfMemoryError: "
    r"|(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY"
    r"|(?:cuda|hip)ErrorMemoryAllocation|(?:CUBLAS|CUDNN|HIPBLAS)_STATUS_ALLOC_FAILED"
)
"""PyTorch's own, by CUDA and HIP; Triton's, of a kernel that it loads; the drivers'; the
libraries'."""
_OUT_WORDS: Final = (
    "out of memory",
    "OutOfMemory",
    "OUT_OF_MEMORY",
    "ErrorMemoryAllocation",
    "_ALLOC_FAILED",
)
_SIZE: Final = r"[0-9]{1,12}(?:\.[0-9]{1,9})? (?:bytes|KiB|MiB|GiB|TiB)"
_SIZE_BYTES: Final = {
    "bytes": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
# PyTorch 2.1 spells capacity "capacty"; before it, one bracket says it all.
_SIZES: Final = (
    compiled(rf"Tried to allocate (?P<requested_bytes>{_SIZE})"),
    compiled(
        rf"GPU (?P<device>[0-9]{{1,4}}) has a total capaci?ty of (?P<capacity_bytes>{_SIZE}) "
        rf"of which (?P<free_bytes>{_SIZE}) is free"
    ),
    compiled(rf"this process has (?P<own_bytes>{_SIZE}) memory in use"),
    compiled(rf"Of the allocated memory (?P<allocated_bytes>{_SIZE}) is allocated by PyTorch"),
    compiled(rf"with (?P<graph_pool_bytes>{_SIZE}) allocated in private pools"),
    compiled(rf"(?P<unallocated_bytes>{_SIZE}) is reserved by PyTorch but unallocated"),
    compiled(
        rf"\(GPU (?P<device>[0-9]{{1,4}}); (?P<capacity_bytes>{_SIZE}) total capacity; "
        rf"(?P<allocated_bytes>{_SIZE}) already allocated; (?P<free_bytes>{_SIZE}) free; "
        rf"(?P<reserved_bytes>{_SIZE}) reserved in total by PyTorch\)"
    ),
)


_PROCESS: Final = compiled(rf"Process [0-9]{{1,10}} has ({_SIZE}) memory in use")
_BY_LIBRARY: Final = compiled("Cuda failure|_STATUS_ALLOC_FAILED")


def logged_memory(number: int, text: str) -> LoggedMemory | None:
    """A rank's report; None where the line is none."""
    match = _REPORT.search(text) if " memory (" in text else None
    if not match:
        return None
    unit = _UNIT_BYTES[match[2]]
    sizes = {_FIELDS[part[1]]: round(float(part[2]) * unit) for part in _PART.finditer(text)}
    return LoggedMemory(number, int(match[1]), **sizes)


def theoretical_memory(number: int, text: str) -> int | None:
    """The number of a line that has the trainer's own sum; None where the line has none."""
    if "Theoretical" in text and _THEORETICAL.search(text):
        return number
    return None


def is_out_of_memory(text: str) -> bool:
    """Whether the line says that the GPU's memory ran out."""
    return holds_one(text, _OUT_WORDS) and _OUT.search(text) is not None


def goes_on(text: str) -> bool:
    """Whether the line holds sizes of an error that began before it."""
    return any(pattern.search(text) for pattern in _SIZES)


def out_of_memory(number: int, text: str, stage: Stage) -> OutOfMemory:
    """The error with what it says; NCCL's and CUDA's own say no sizes."""
    words = dict[str, str]()
    for pattern in _SIZES:
        if match := pattern.search(text):
            words |= match.groupdict()
    device = words.pop("device", None)
    sizes = {name: _bytes(size) for name, size in words.items()}
    match sizes:
        case {"allocated_bytes": allocated, "unallocated_bytes": unallocated}:
            sizes["reserved_bytes"] = allocated + unallocated
        case {"allocated_bytes": allocated, "reserved_bytes": reserved}:
            sizes["unallocated_bytes"] = reserved - allocated
    return OutOfMemory(
        number,
        stage,
        rank_of(text),
        device=of_known(int, device),
        others_bytes=_others_bytes(text, sizes.pop("own_bytes", None), sizes.get("reserved_bytes")),
        by_library=_BY_LIBRARY.search(text) is not None,
        **sizes,
    )


def _others_bytes(text: str, own: int | None, reserved: int | None) -> int | None:
    """Memory of other processes; None where none is listed, or it is unknown which is its own.

    PyTorch knows its own by a number, which is another one in a container: then its own is among
    those listed, the least that holds what it reserved.
    """
    listed = sorted(map(_bytes, _PROCESS.findall(text)))
    if listed and own is None and reserved is not None:
        own = next((size for size in listed if size >= reserved), None)
        listed = [*listed, -(own or 0)]
    if own is None or not listed:
        return None
    return sum(listed)


def _bytes(size: str) -> int:
    value, unit = size.split()
    return round(float(value) * _SIZE_BYTES[unit])


@frozen
class PeakMemory:
    """The largest that any rank reports, in bytes; a figure that none reports is None.

    `rank`: of the largest allocation.
    """

    allocated_bytes: int | None
    reserved_bytes: int | None
    rank: int | None


@frozen
class Unallocated:
    """Memory that PyTorch held without using it: what fragments do not fit, or what a peak left
    behind.
    """

    line: int
    rank: int | None
    reserved_bytes: int
    allocated_bytes: int

    @property
    def unallocated_bytes(self) -> int:
        return self.reserved_bytes - self.allocated_bytes

    @property
    def unallocated_frac(self) -> float:
        return self.unallocated_bytes / self.reserved_bytes


def peak_memory(log: TrainingLog) -> PeakMemory | None:
    """The peak over all ranks that report; None where none does."""
    if not log.memory:
        return None
    allocated, largest = _largest(log, lambda report: report.peak_allocated_bytes)
    reserved, _ = _largest(log, lambda report: report.peak_reserved_bytes)
    return PeakMemory(allocated, reserved, largest.rank if largest else None)


def _largest(
    log: TrainingLog, figure: Callable[[LoggedMemory], int | None]
) -> tuple[int | None, LoggedMemory | None]:
    """The largest of a figure, and the first report that has it; (None, None) where none does."""
    most: tuple[int | None, LoggedMemory | None] = None, None
    for report in log.memory:
        size = figure(report)
        if size is not None and (most[0] is None or size > most[0]):
            most = size, report
    return most


def most_unallocated(log: TrainingLog) -> Unallocated | None:
    """The report or error with the largest part of its reserved memory not allocated; None without
    one.
    """
    holdings = (
        Unallocated(report.line, report.rank, reserved, allocated)
        for report, reserved, allocated in _held_memory(log)
        if reserved and allocated is not None and allocated >= 0
    )
    return max(holdings, key=lambda holding: holding.unallocated_frac, default=None)


def _held_memory(
    log: TrainingLog,
) -> Iterator[tuple[LoggedMemory | OutOfMemory, int | None, int | None]]:
    """Reports and errors, each with what was reserved and what of it was allocated."""
    for report in log.memory:
        yield report, report.peak_reserved_bytes, report.peak_allocated_bytes
    for entry in log.memory:
        yield entry, entry.reserved_bytes, of_known(sub, entry.reserved_bytes, entry.inactive_bytes)
    for error in log.out_of_memory:
        yield error, error.reserved_bytes, error.allocated_bytes


def inactive_memory(log: TrainingLog) -> LoggedMemory | None:
    """The report with the most memory in split blocks that nobody uses; None where none reports
    it.
    """
    return _largest(log, lambda report: report.inactive_bytes)[1]


def pieces_suffice(log: TrainingLog) -> bool | None:
    """Whether what is reserved and not allocated, and free, could hold what each error asked for.

    None where no error has the numbers.
    """
    held = []
    for error in log.out_of_memory:
        requested, room = error.requested_bytes, _room(error)
        if requested and room:
            held.append(requested <= room)
    if held:
        return all(held)
    return None


def _room(error: OutOfMemory) -> int | None:
    """All that PyTorch could allocate at that moment; what lies outside PyTorch is not its own."""
    unallocated, free = error.unallocated_bytes, error.free_bytes
    if unallocated is not None and free is not None:
        return unallocated + free
    return of_known(sub, error.capacity_bytes, error.allocated_bytes)
