"""Memory over time by a snapshot of PyTorch: what holds its peak, and a curve."""

from collections.abc import Iterator, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Block, Blocks, Code, Drawing, Entry, Hue, Part, Term, table
from reports.content.names import share_of, statement, titled, when
from reports.content.plane import Plane
from reports.content.tables import shaped
from traces.missing import Missing, known
from traces.sections.memory_snapshot import SnapshotCurve, SnapshotDevice
from traces.sizes.memory import MemoryEstimate
from traces.spelling import counted, gigabytes, sized

_HEIGHT: Final = 8
_WIDTH: Final = 64
_STACKS: Final = 12
_ESTIMATED: Final = ("parameters", "gradients", "optimizer", "activations")


def snapshot_part(result: Result) -> Iterator[Part]:
    """Of a result with a snapshot."""
    if snapshot := result.memory_snapshot:
        blocks = list[Block]()
        for gpu in snapshot.devices:
            blocks += _device(gpu, known(result.memory_estimate))
        yield titled("memory-snapshot", blocks)


def _device(gpu: SnapshotDevice, estimate: MemoryEstimate | None) -> Blocks:
    yield statement(
        f"GPU {gpu.device}, at the snapshot: {gigabytes(gpu.used_bytes)} in use of "
        f"{gigabytes(gpu.reserved_bytes)} reserved, "
        f"{gigabytes(gpu.unused_reserved_bytes)} fragments and cache."
    )
    if gpu.out_of_memory:
        yield statement(f"{counted(gpu.out_of_memory, 'allocation')} failed for want of memory.")
    if isinstance(gpu.peak_bytes, Missing):
        yield statement(f"The peak is unknown: {gpu.peak_bytes.reason}. {gpu.peak_bytes.cure}.")
    peak, parts = gpu.peak_bytes, known(gpu.at_peak_bytes)
    if not peak or parts is None:
        return
    heads = ["at the peak", "size", "share"]
    rows = list[list[Entry]]()
    for key, size in parts.items():
        rows.append([Term(key), sized(size), share_of(size / peak, Hue.MEMORY)])
        if estimate:
            rows[-1].append(sized(getattr(estimate, f"{key}_bytes")) if key in _ESTIMATED else "")
    if estimate:
        heads.append("estimate")
    yield table(f"In use at the peak of {gigabytes(peak)}", heads, rows)
    columns = _columns(gpu.curve, gpu.entries)
    ends = f"{'':>10}  first entry{'last entry':>{_WIDTH - 11}}"
    yield memory_drawing(columns, "entries of the history, first to last", ends)
    before = sized(gpu.before_recording_bytes)
    yield statement(
        f"{before} were in use before the history begins; stacks of these are not known."
    )
    rows = []
    for stack in gpu.stacks_at_peak[:_STACKS]:
        share = share_of(stack.size_bytes / peak)
        what = Code(" < ".join(stack.frames) or "(no stack)")
        rows.append(
            [what, f"{stack.count:,}", sized(stack.size_bytes), share, Term(stack.category)]
        )
    yield shaped("stacks", rows, len(gpu.stacks_at_peak) - len(rows) + gpu.stacks_left_out)


def _columns(curve: SnapshotCurve, entries: int) -> list[int]:
    """The most in use of each stretch of the history."""
    columns = [0] * _WIDTH
    for place, size in zip(curve.entry, curve.used_bytes, strict=True):
        at = min(_WIDTH - 1, place * _WIDTH // max(1, entries + 1))
        columns[at] = max(columns[at], size)
    last_size = 0
    for at, size in enumerate(columns):  # a history of few entries has no point in every column
        last_size = columns[at] = size or last_size
    return columns


def memory_plane(used_bytes: Sequence[int], across: str) -> Plane:
    """Memory in use from left to right, up to its peak."""
    count, peak = max(1, len(used_bytes)), max(used_bytes, default=0)
    steps = list[tuple[float, float]]()
    for place, size in enumerate(used_bytes):
        up = size / max(1, peak)
        steps += ((place / count, up), ((place + 1) / count, up))
    return Plane(
        (tuple(steps),), across, f"memory in use, {gigabytes(peak)} at its peak", filled=True
    )


def memory_drawing(used_bytes: Sequence[int], across: str, *under: str) -> Drawing:
    """Memory in use, in characters, with lines `under` it, and as a picture."""
    return Drawing((*_chart(used_bytes), *under), memory_plane(used_bytes, across))


def _chart(used_bytes: Sequence[int]) -> Iterator[str]:
    """Memory in use from left to right, as columns of characters, the highest at its peak."""
    count, peak, columns = min(_WIDTH, len(used_bytes)), max(used_bytes, default=0), []
    for at in range(count):
        begin, end = at * len(used_bytes) // count, (at + 1) * len(used_bytes) // count
        columns.append(max(used_bytes[begin:end]))
    for level in range(_HEIGHT, 0, -1):
        line = "".join("#" if size * _HEIGHT >= peak * (level - 0.5) else " " for size in columns)
        yield f"{when(level == _HEIGHT, gigabytes(peak)):>10} |{line}|"
