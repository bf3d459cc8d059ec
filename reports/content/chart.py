"""Values over time drawn in ASCII, for pages that go to a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from traces.spelling import rounded

WIDTH: Final = 76
_HEIGHT: Final = 12
_APART: Final = 4


def chart_lines(
    numbers: Sequence[int], values: Sequence[float | None], changed: Sequence[int]
) -> Iterator[str]:
    """Values as `o`, a bar of `:` before each place of `changed`; `numbers` of results below."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    labels = {
        row: rounded(low + (high - low) * row / (_HEIGHT - 1)) for row in (0, _HEIGHT // 2, _HEIGHT - 1)
    }
    margin = max(map(len, labels.values()))
    room = WIDTH - margin - 3
    columns = _columns(len(values), room)
    rows = [[" "] * (columns[-1] + 1) for _ in range(_HEIGHT)]
    for place in changed:
        for row in rows:
            row[max(columns[place] - 1, 0)] = ":"
    for value, column in zip(values, columns, strict=True):
        if value is not None:
            height = round((value - low) / (high - low) * (_HEIGHT - 1)) if high > low else 0
            rows[height][column] = "o"
    for height in reversed(range(_HEIGHT) if high > low else range(1)):
        yield f"{labels.get(height, ''):>{margin}} | {''.join(rows[height])}".rstrip()
    yield f"{'':>{margin}} +{'-' * (columns[-1] + 2)}"
    yield f"{'':>{margin}}   {_under(numbers, columns, room)}"


def _columns(count: int, width: int) -> list[int]:
    """Where each value stands: up to four columns apart while there is room, at most `width`."""
    if count == 1:
        return [1]
    apart = min(_APART, (width - 2) // (count - 1))
    if apart:
        return [1 + place * apart for place in range(count)]
    return [1 + place * (width - 2) // (count - 1) for place in range(count)]


def _under(numbers: Sequence[int], columns: Sequence[int], room: int) -> str:
    """Numbers of results below the axis, as many as do not touch."""
    line = ""
    for number, column in zip(numbers, columns, strict=True):
        if column >= len(line) + (2 if line else 0) and column + len(str(number)) <= room:
            line = f"{line:<{column}}{number}"
    return line
