"""Pairs of small random runs, each repeated many times: the new side differs in up to three things."""

from __future__ import annotations

from operator import itemgetter
from random import Random
from typing import Any, Final, cast

from bench.simulate.recording import Recording
from tests.kept.exchanges import exchanged
from tests.kept.spoiled import CALLS, KERNELS, SPOILERS, Spoil, some
from tests.second_definition.drawn import draw

COPIES: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
TIMES: Final = ("start", "end", "timestamp")
JITTER_NS: Final = 300


def both_sides(seed: int) -> tuple[Recording, Recording]:
    """The base and the new side."""
    dice = Random(f"pair {seed}")
    base, new = (exchanged(seed).recording if seed % 2 else draw(seed).recording for _ in range(2))
    for spoil in dice.sample((*SPOILERS, *OF_PAIRS), dice.choice((0, 1, 1, 1, 2, 3))):
        spoil(dice, new)
    for side in (base, new):
        _repeat(dice, side, 6 if seed % 5 else 2)
    return base, new


def _repeat(dice: Random, recording: Recording, times: int) -> None:
    """The same rows again and again, behind each other, kernels a little shorter each time."""
    spans = [(row["start"], row.get("end") or row["start"]) for row in _timed(recording)]
    period_ns = max(end for _, end in spans) - min(start for start, _ in spans) + 20_000 if spans else 0
    for table in recording.rows:
        rows = _rows(recording, table)
        recording.rows[table] = [_again(dice, row, time, period_ns) for time in range(times) for row in rows]


def _again(dice: Random, row: dict[str, Any], time: int, period_ns: int) -> dict[str, Any]:
    shifted = {name: row[name] + time * period_ns for name in TIMES if row.get(name)}
    if row.get("correlationId"):
        shifted["correlationId"] = row["correlationId"] + 100_000 * time
    if "demangledName" in row:
        length_ns = shifted["end"] - shifted["start"]
        shifted["end"] -= dice.randrange(JITTER_NS) if length_ns > 2 * JITTER_NS else 0
    return row | shifted


def _gone(dice: Random, recording: Recording) -> None:
    table = dice.choice([*recording.rows])
    gone = {id(row) for row in some(dice, recording.rows[table])}
    recording.rows[table] = [row for row in recording.rows[table] if id(row) not in gone]


def _all_longer(dice: Random, recording: Recording) -> None:
    """All kernels of one name, so that what follows begins later."""
    rows = _rows(recording, KERNELS)
    name, factor = (dice.choice(rows)["demangledName"] if rows else ""), dice.choice((2, 2, 5))
    later_ns = 0
    for row in sorted(_timed(recording), key=itemgetter("start")):
        row["start"] += later_ns
        if row.get("end"):
            row["end"] += later_ns
        if row.get("demangledName") == name:
            longer_ns = (factor - 1) * (row["end"] - row["start"])
            row["end"], later_ns = row["end"] + longer_ns, later_ns + longer_ns


def _idle(dice: Random, recording: Recording) -> None:
    """The host is late for everything behind an instant, of each kind of call alike."""
    rows = _rows(recording, CALLS)
    from_ns = dice.choice(rows)["start"] if rows else 0
    for row in _timed(recording):
        for name in TIMES:
            if row.get(name) and row[name] > from_ns:
                row[name] += 90_000


def _of_other_memory(dice: Random, recording: Recording) -> None:
    kind = dice.choice((0, 1, 2))
    for row in _rows(recording, COPIES):
        row["srcKind"], row["bytes"] = kind, row["bytes"] * dice.choice((1, 4))


def _of_another_precision(_: Random, recording: Recording) -> None:
    for row in _rows(recording, KERNELS):
        row["demangledName"] = row["demangledName"].replace("nvjet_hsh", "nvjet_qqtst")


def _rows(recording: Recording, table: str) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], recording.rows.get(table, []))


def _timed(recording: Recording) -> list[dict[str, Any]]:
    return [row for table in recording.rows for row in _rows(recording, table) if row.get("start")]


OF_PAIRS: Final[tuple[Spoil, ...]] = (
    _gone, _all_longer, _all_longer, _all_longer, _all_longer, _idle, _idle, _idle, _of_other_memory,
    _of_another_precision,
)  # fmt: skip
