"""`--ranks map.csv`, and how many ranks are said of a run: what is recorded counts more."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from traces.errors import InputError, UsageError
from traces.files.beneath import real_path
from traces.files.plain_file import read_text
from traces.frozen import frozen
from traces.limits import MOST_RANKS
from traces.missing import known
from traces.patterns import whole_number
from traces.ranks.summaries.identity import WorldSize, fingerprint_of_text
from traces.ranks.summaries.summary import Identity
from traces.timeline import RankTimeline

if TYPE_CHECKING:
    from heuristics.config.about import Given
    from heuristics.judging.judgement import FilesRead
    from traces.sections.run import Run

_MUST: Final = ("file", "rank")
_MAY: Final = ("process", "device", "host", "world_size")


@frozen
class MapRow:
    """A line of the map: a rank of a recording. `place` names the line; None is what the line
    leaves open.
    """

    place: str
    file: str
    rank: int
    process: int | None = None
    device: int | None = None
    host: str | None = None
    world_size: int | None = None


def read_rank_map(path: Path | None, traces: Sequence[Path]) -> dict[Path, tuple[MapRow, ...]]:
    """The rows of each trace; none without a map.

    Raises `InputError` for a map that cannot be read, `UsageError`, with its line, for what is
    wrong in it.
    """
    if not path:
        return {}
    by_trace = defaultdict[Path, list[MapRow]](list)
    ranks = dict[int, str]()
    by_path, by_name = {}, defaultdict[str, list[Path]](list)
    for trace in traces:
        by_path[real_path(trace)] = trace
        by_name[trace.name].append(trace)
    for row in _rows(path):
        if (first := ranks.setdefault(row.rank, row.place)) is not row.place:
            raise UsageError(
                f"{row.place}: rank {row.rank} is in {first} already. Give each rank once."
            )
        by_trace[_named(row, path, by_path, by_name)].append(row)
    rows = list(chain.from_iterable(by_trace.values()))
    sizes = {row.world_size: row.place for row in rows if row.world_size}
    if len(sizes) > 1:
        (first_size, _), (other_size, place), *_ = sizes.items()
        raise UsageError(
            f"{place}: world_size {other_size}, and {first_size} before. Give the size of one run."
        )
    for size in sizes:
        for row in rows:
            if row.rank >= size:
                raise UsageError(
                    f"{row.place}: rank {row.rank} of {size} ranks. Ranks count from 0."
                )
    return {trace: tuple(rows_of_trace) for trace, rows_of_trace in by_trace.items()}


def _rows(path: Path) -> list[MapRow]:
    try:
        lines = read_text(path).splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path} cannot be read ({reason}). Check the path of --ranks.") from None
    reader = csv.DictReader(lines)
    known = f"It has file,rank and may have {','.join(_MAY)}."
    try:
        reader.fieldnames = names = [name.strip().lower() for name in reader.fieldnames or ()]
        for column in _MUST:
            if column not in names:
                raise UsageError(f"{path.name}:1: no column {column}. {known}")
        for column in names:
            if column not in (*_MUST, *_MAY):
                raise UsageError(f"{path.name}:1: the column {column!r} is not known. {known}")
        return [
            _row(f"{path.name}:{reader.line_num}", line) for line in reader if any(line.values())
        ]
    except csv.Error as error:
        raise UsageError(f"{path.name}:{reader.line_num}: no CSV ({error}).") from None


def _row(place: str, line: Mapping[str | None, str | None]) -> MapRow:
    if None in line:
        raise UsageError(f"{place}: more cells than columns. Quote a cell that holds a comma.")
    cells = {name: (text or "").strip() for name, text in line.items() if name is not None}
    rank = _number(place, cells, "rank", 0)
    if rank is None or not cells["file"]:
        lacking = "file" if rank is not None else "rank"
        raise UsageError(f"{place}: no {lacking}. Give both file and rank.")
    return MapRow(
        place,
        cells["file"],
        rank,
        _number(place, cells, "process", 0),
        _number(place, cells, "device", 0),
        cells.get("host") or None,
        _number(place, cells, "world_size", 1),
    )


def _number(place: str, cells: Mapping[str, str], name: str, least: int) -> int | None:
    if not (text := cells.get(name, "")):
        return None
    number = whole_number(text)
    most = MOST_RANKS.value if name in ("rank", "world_size") else 1 << 31
    if number is None or not least <= number <= most:
        raise UsageError(f"{place}: {name} {text!r} is no number of a {name.replace('_', ' ')}.")
    return number


def _named(
    row: MapRow, map_path: Path, by_path: Mapping[str, Path], by_name: Mapping[str, Sequence[Path]]
) -> Path:
    """The trace that a row names: by its path, from here or from the map, or by its name alone."""
    for place in map(real_path, (Path(row.file), map_path.parent / row.file)):
        if trace := by_path.get(place):
            return trace
    fits = by_name.get(row.file, ())
    if not fits:
        raise UsageError(f"{row.place}: {row.file} is none of the recordings that are given.")
    if len(fits) > 1:
        raise UsageError(
            f"{row.place}: {len(fits)} recordings are named {row.file}. Give the path of one."
        )
    return fits[0]


def mapped_world(rows: Mapping[Path, Sequence[MapRow]]) -> WorldSize | None:
    for row in chain.from_iterable(rows.values()):
        if row.world_size:
            return WorldSize(row.world_size, row.place)
    return None


def check_rows(rows: Sequence[MapRow], ranks: Sequence[RankTimeline]) -> list[str]:
    """Warnings of rows that are of no rank of their recording: it may have no kernels.

    Raises `UsageError` for a row that several ranks fit, or whose rank another row has.
    """
    taken = dict[int, MapRow]()
    warnings = []
    for row in rows:
        fits = [place for place, rank in enumerate(ranks) if _is_of(rank, row)]
        if not fits:
            warnings.append(f"no rank with kernels is the one of {row.place}")
            continue
        if len(fits) > 1:
            raise UsageError(
                f"{row.place}: {len(fits)} ranks of {row.file} fit. Add a column process or device."
            )
        if (first := taken.setdefault(fits[0], row)) is not row:
            raise UsageError(f"{row.place}: {first.place} gives this rank a number already.")
    return warnings


def row_of(rows: Sequence[MapRow], rank: RankTimeline) -> MapRow | None:
    return next(filter(partial(_is_of, rank), rows), None)


def _is_of(rank: RankTimeline, row: MapRow) -> bool:
    return row.process in (None, rank.process) and row.device in (None, rank.device)


def identified(identity: Identity, row: MapRow) -> Identity:
    """Who a rank is, by its recording and then by the map. A host has a clock of its own."""
    return replace(
        identity,
        rank=row.rank if identity.rank is None else identity.rank,
        clock=identity.clock
        if row.host is None
        else fingerprint_of_text(f"{identity.clock} {row.host}"),
    )


def contradictions(identity: Identity, row: MapRow) -> list[str]:
    """What a recording says otherwise than the map; the map's number is then not used."""
    pairs = ("rank", identity.rank, row.rank), ("world size", identity.world_size, row.world_size)
    return [
        f"{what} {recorded} is recorded; {row.place} has {given}, which is not used"
        for what, recorded, given in pairs
        if None not in (recorded, given) and recorded != given
    ]


def configured_world(given: Given, configured: FilesRead) -> WorldSize | None:
    """The world size by option, configuration or log, in this order of trust, and where it is
    from.
    """
    from heuristics.run.run import Run

    config = Run(given=given, settings=configured.files, log=configured.log).config
    size = config.positive("world_size")
    if size is None:
        return None
    return WorldSize(size, config.written.said("world_size") or "the configuration")


def other_world(given: WorldSize | None, run: Run) -> list[str]:
    """What to warn of where a run has another number of ranks than is said of it."""
    size = known(run.world_size)
    if not given or given.ranks == size:
        return []
    if size is not None:
        had = f"{size} ranks by {run.world_size_from or 'its recordings'}"
        return [f"the run has {had}; {given.said} has {given.ranks}, which is not used"]
    return [f"{given.said} has {given.ranks} ranks, fewer than were recorded; it is not used"]
