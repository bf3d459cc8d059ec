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
        for one in snapshot.devices:
            blocks += _device(one, known(result.memory_estimate))
        yield titled("memory-snapshot", blocks)


def _device(one: SnapshotDevice, estimate: MemoryEstimate | None) -> Blocks:
    yield statement(
        f"GPU {one.device}, at the snapshot: {gigabytes(one.used_bytes)} in use of "
        f"{gigabytes(one.reserved_bytes)} reserved, "
        f"{gigabytes(one.unused_reserved_bytes)} fragments and cache."
    )
    if one.out_of_memory:
        yield statement(f"{counted(one.out_of_memory, 'allocation')} failed for want of memory.")
    if isinstance(one.peak_bytes, Missing):
        yield statement(f"The peak is unknown: {one.peak_bytes.reason}. {one.peak_bytes.cure}.")
    peak, parts = one.peak_bytes, known(one.at_peak_bytes)
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
    columns = _columns(one.curve, one.entries)
    ends = f"{'':>10}  first entry{'last entry':>{_WIDTH - 11}}"
    yield memory_drawing(columns, "entries of the history, first to last", ends)
    before = sized(one.before_recording_bytes)
    yield statement(
        f"{before} were in use before the history begins; stacks of these are not known."
    )
    rows = []
    for each in one.stacks_at_peak[:_STACKS]:
        share = share_of(each.size_bytes / peak)
        what = Code(" < ".join(each.frames) or "(no stack)")
        rows.append([what, f"{each.count:,}", sized(each.size_bytes), share, Term(each.category)])
    yield shaped("stacks", rows, len(one.stacks_at_peak) - len(rows) + one.stacks_left_out)


def _columns(curve: SnapshotCurve, entries: int) -> list[int]:
    """The most in use of each stretch of the history."""
    columns = [0] * _WIDTH
    for place, size in zip(curve.entry, curve.used_bytes, strict=True):
        at = min(_WIDTH - 1, place * _WIDTH // max(1, entries + 1))
        columns[at] = max(columns[at], size)
    held = 0
    for at, size in enumerate(columns):  # a history of few entries has no point in every column
        held = columns[at] = size or held
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
