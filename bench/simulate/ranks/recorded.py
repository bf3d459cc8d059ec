"""A run of several ranks as files: which ranks, by which clocks, with what of NCCL, in how many files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from pathlib import Path
from typing import Final

from bench.simulate.export import SESSION_START_NS, write_export
from bench.simulate.ranks.clocks import Clock, session_ns
from bench.simulate.ranks.happened import RanksDone
from bench.simulate.ranks.nccl import NcclRanges
from bench.simulate.recorded import PID, START_NS, Process, View, newer, record
from bench.simulate.recording import Recording, Row
from tests.recordings.payloads import with_payloads_of_rows

_PIDS_APART: Final = 10
_TIMES: Final = ("start", "end", "timestamp", "rawTimestamp")
_BLOBS_FROM: Final = "3.16.1"
_PLAIN: Final = View()


class Files(Enum):
    """What one file holds; several hosts in one keep their own clocks."""

    RANK = "rank"
    HOST = "host"
    ALL = "all"


class Nccl(Enum):
    """What is recorded of NCCL's calls."""

    NOTHING = "nothing"
    RANGES = "ranges"
    PAYLOADS = "payloads"


@dataclass(frozen=True, slots=True)
class Capture:
    """How a run is recorded. `ranks`: those recorded, or all; `views`: of ranks that differ from `view`.

    Without `inits` the communicators were made before the recording began, so no range tells world sizes.
    `mpi`: each process has its rank in MPI_RANKS.
    """

    view: View = _PLAIN
    files: Files = Files.RANK
    nccl: Nccl = Nccl.PAYLOADS
    inits: bool = True
    mpi: bool = False
    ranks: Sequence[int] | None = None
    views: Mapping[int, View] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """A file, its ranks, and when its session began since 1970 by the clock of the first one's host."""

    path: Path
    ranks: tuple[int, ...]
    session_start_ns: int


def write_ranks(
    done: RanksDone, folder: Path, clocks: Sequence[Clock], capture: Capture | None = None
) -> list[Written]:
    """Write the files of a run, under names that say nothing of ranks or hosts.

    Raises ValueError for payloads in a schema without blobs.
    """
    capture = capture or Capture()
    if capture.nccl is Nccl.PAYLOADS and not newer(capture.view.schema, _BLOBS_FROM):
        raise ValueError(f"schema {capture.view.schema} holds no payloads; {_BLOBS_FROM} and newer do")
    layout = done.run.layout
    ranks = range(layout.world_size) if capture.ranks is None else capture.ranks
    together: dict[int, list[int]] = {}
    for rank in ranks:
        key = {Files.RANK: rank, Files.HOST: layout.host(rank), Files.ALL: 0}[capture.files]
        together.setdefault(key, []).append(rank)
    return [_write(done, folder, clocks, capture, tuple(each)) for each in together.values()]


def _write(
    done: RanksDone, folder: Path, clocks: Sequence[Clock], capture: Capture, ranks: tuple[int, ...]
) -> Written:
    layout = done.run.layout
    zero_ns = clocks[layout.host(ranks[0])].at(session_ns(done.run, ranks[0])) - START_NS
    whole, payloads = Recording(), dict[int, bytes]()
    for rank in ranks:
        recording, found = _rank(done, rank, capture)
        clock = clocks[layout.host(rank)]
        before = len(whole.rows.get("NVTX_EVENTS", ()))
        payloads |= {before + place: payload for place, payload in found.items()}
        whole.gpus = whole.gpus or recording.gpus
        for table, rows in recording.rows.items():
            whole.rows.setdefault(table, []).extend(_by_clock(row, clock, zero_ns) for row in rows)
    name = blake2b(f"{done.run.seed}/{ranks}".encode(), digest_size=5).hexdigest()
    path = folder / f"{name}.sqlite"
    session_start_ns = SESSION_START_NS + zero_ns
    write_export(path, whole, capture.view.schema, session_start_ns=session_start_ns)
    if payloads:
        with_payloads_of_rows(path, payloads)
    return Written(path, ranks, session_start_ns)


def _rank(done: RanksDone, rank: int, capture: Capture) -> tuple[Recording, dict[int, bytes]]:
    """The recording of one rank in true time, and payloads by their rows in it."""
    run, layout, view = done.ranks[rank], done.run.layout, capture.views.get(rank, capture.view)
    process = Process(PID + _PIDS_APART * rank, layout.local(rank), layout.ranks_per_host)
    recording = record(run, view, process)
    if capture.mpi:
        recording.mpi_rank(process.pid, rank)
    if capture.nccl is Nccl.NOTHING:
        return recording, {}
    ranges = NcclRanges(done.run, rank, recording, process)
    ranges.add(run, view, inits=capture.inits)
    return recording, ranges.payloads if capture.nccl is Nccl.PAYLOADS else {}


def _by_clock(row: Row, clock: Clock, zero_ns: int) -> Row:
    """A row of true times as its host's clock shows them, counted from the start of the session."""
    shown = dict(row)
    for name in _TIMES:
        if isinstance(ns := row.get(name), int):
            shown[name] = clock.at(ns - START_NS) - zero_ns
    return shown
