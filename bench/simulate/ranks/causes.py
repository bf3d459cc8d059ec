"""A cause put into the programs of a run: what becomes slower, and on whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import Final

from bench.simulate.draws import spread, uniform
from bench.simulate.handicaps import Edit, edited, on_works
from bench.simulate.host_program import (
    MAIN,
    Allocate,
    Await,
    Busy,
    Engine,
    Initialise,
    Launch,
    Operation,
    Program,
    Push,
    Record,
    Spin,
    StreamWait,
    Synchronise,
    Work,
)
from bench.simulate.ranks.described import Cause, Extent, Jitter, RanksRun
from bench.simulate.ranks.programs import RINGS, plain_program

_MS: Final = 1_000_000
_PAUSES: Final = 0.2
"""Part of the layers before which a host pauses."""


def programs_of(run: RanksRun) -> tuple[Program, ...]:
    """The programs of all ranks, by rank."""
    edit = _EDITS.get(run.cause)
    return _plain(run) if edit is None else tuple(edit(run, _plain(run.mended())))


@lru_cache(maxsize=1)
def _plain(run: RanksRun) -> tuple[Program, ...]:
    """Programs before any edit. The last are kept: the same run is asked for with its cause and without."""
    return tuple(plain_program(run, rank) for rank in range(run.layout.world_size))


def jittered_rank(run: RanksRun, step: int) -> int:
    """Whom rotating jitter disturbs in a step: never the same rank twice in a row."""
    count = run.layout.world_size
    place = int(uniform(f"{run.seed}/jitter/0") * count)
    for passed in range(1, step + 1):
        place += 1 + int(uniform(f"{run.seed}/jitter/{passed}") * (count - 1))
    return place % count


def pauses(run: RanksRun, rank: int, *where: object) -> bool:
    """Whether the host of a rank pauses there, where all do now and then."""
    return uniform(f"{run.seed}/pauses/{rank}/{where}") < _PAUSES


def _slow_device(run: RanksRun, plain: Sequence[Program]) -> list[Program]:
    def work_of(rank: int) -> Callable[[Work], Work]:
        def is_slow(one: Work) -> bool:
            product = run.extent is not Extent.GEMMS or "gemm" in one.kernel
            return product and run.is_late(Cause.SLOW_DEVICE, rank, one.place.step)

        return _slower_compute(run.strength, is_slow)

    return [edited(program, on_works(work_of(rank))) for rank, program in enumerate(plain)]


def _slower_compute(factor: float, is_slow: Callable[[Work], bool]) -> Callable[[Work], Work]:
    def work(one: Work) -> Work:
        if one.engine is not Engine.SMS or not is_slow(one):
            return one
        return one._replace(alone_ns=round(one.alone_ns * factor))

    return work


def _slow_host(run: RanksRun, plain: Sequence[Program]) -> list[Program]:
    edit, late = _slower_host(run.strength), run.late_ranks
    return [edited(program, edit) if rank in late else program for rank, program in enumerate(plain)]


def _slower_host(factor: float) -> Edit:
    """Every duration of the host is longer: its calls, what lies between them, and waking up."""

    def times(ns: int) -> int:
        return round(ns * factor)

    def edit(operation: Operation) -> Operation:
        match operation:
            case Busy():
                return operation._replace(ns=times(operation.ns))
            case Launch():
                late_ns = operation.return_ns
                return operation._replace(
                    api_ns=times(operation.api_ns),
                    tail_ns=times(operation.tail_ns),
                    return_ns=times(late_ns) if operation.returns_with == "d2h" else late_ns,
                )
            case Record() | StreamWait():
                return operation._replace(api_ns=times(operation.api_ns))
            case Synchronise():
                return operation._replace(
                    api_ns=times(operation.api_ns), return_ns=times(operation.return_ns)
                )
            case Allocate() | Initialise():
                return operation._replace(own_ns=times(operation.own_ns))
            case Await():
                return operation._replace(wake_ns=times(operation.wake_ns))
            case Spin():
                return operation._replace(poll_ns=times(operation.poll_ns))
            case _:
                return operation

    return edit


def slow_frac(run: RanksRun, whole: bool, group: Sequence[int], rank: int) -> float:
    """What a slow link adds to a transfer of a rank, as part of it: by what of its data passes the link.

    `whole`: all data passes all ranks, as along a ring.
    """
    late, host = {*run.late_ranks}, run.layout.host

    def passes(one: int, other: int) -> bool:
        apart = run.extent is not Extent.NODE or host(one) != host(other)
        return apart and (one in late or other in late)

    if whole:
        return (run.strength - 1) * any(passes(one, other) for one, other in combinations(group, 2))
    with_others = [passes(rank, other) for other in group if other != rank]
    return (run.strength - 1) * sum(with_others) / len(with_others)


def _slow_link(run: RanksRun, plain: Sequence[Program]) -> list[Program]:
    return [edited(program, _slower_transfers(run, rank)) for rank, program in enumerate(plain)]


def _slower_transfers(run: RanksRun, rank: int) -> Edit:
    """Transfers of the slow rank by the factor; of its peers by what of their data passes that rank."""

    def edit(operation: Operation) -> Operation:
        if not isinstance(operation, Launch) or operation.collective is None:
            return operation
        collective = operation.collective
        slower = 1 + slow_frac(run, operation.works[0].kernel in RINGS, collective.group, rank)
        transfer_ns = round(collective.transfer_ns * slower)
        works = (operation.works[0]._replace(alone_ns=transfer_ns),)
        return operation._replace(works=works, collective=collective._replace(transfer_ns=transfer_ns))

    return edit


def _late_loader(run: RanksRun, plain: Sequence[Program]) -> list[Program]:
    """The wait for a batch is longer, in every k-th step."""
    step = -1

    def edit(operation: Operation) -> Operation:
        nonlocal step
        if not isinstance(operation, Busy) or operation.doing != "data":
            return operation
        step += 1
        if (step + 1) % run.every:
            return operation
        late = spread(uniform(f"{run.seed}/loader/{step}"), 0.2)
        return operation._replace(ns=operation.ns + round(run.strength * late * _MS))

    return [edited(program, edit) if rank == run.rank else program for rank, program in enumerate(plain)]


def _rotating_jitter(run: RanksRun, plain: Sequence[Program]) -> list[Program]:
    programs = list(plain)
    if run.extent is Extent.PAUSES:
        return [_paused(run, program, rank) for rank, program in enumerate(programs)]
    for step in range(run.knobs.step_count):
        rank = jittered_rank(run, step)
        if run.jitter is Jitter.DEVICE:
            edit = _slower_compute(run.strength, partial(_is_in, step))
            programs[rank] = edited(programs[rank], on_works(edit))
        else:
            programs[rank] = _interrupted(run, programs[rank], step)
    return programs


def _is_in(step: int, work: Work) -> bool:
    return work.place.step == step


def _paused(run: RanksRun, program: Program, rank: int) -> Program:
    """The host does something else before some of the layers."""
    main: list[Operation] = []
    for place, one in enumerate(program.threads[MAIN]):
        main.append(one)
        if isinstance(one, Push) and one.kind == "layer" and pauses(run, rank, place):
            main.append(Busy(round(run.strength * _MS)))
    return Program(program.machine, {**program.threads, MAIN: main})


def _interrupted(run: RanksRun, program: Program, step: int) -> Program:
    """The host of a rank does something else for a while, before one of the forward layers of a step."""
    main = list(program.threads[MAIN])
    steps = [place for place, one in enumerate(main) if isinstance(one, Push) and one.kind == "step"]
    end = [*steps, len(main)][step + 1]
    layers = [
        place
        for place, one in enumerate(main[:end])
        if place > steps[step] and isinstance(one, Push) and one.kind == "layer"
    ]
    chosen = layers[int(uniform(f"{run.seed}/pause/{step}") * len(layers))]
    main.insert(chosen + 1, Busy(round(run.strength * _MS)))
    return Program(program.machine, {**program.threads, MAIN: main})


_EDITS: Final[Mapping[Cause, Callable[[RanksRun, Sequence[Program]], list[Program]]]] = {
    Cause.SLOW_DEVICE: _slow_device,
    Cause.SLOW_HOST: _slow_host,
    Cause.SLOW_LINK: _slow_link,
    Cause.DATA_LOADER: _late_loader,
    Cause.ROTATING_JITTER: _rotating_jitter,
}
"""The causes that edit programs; routing and layers of a stage are written into them."""
