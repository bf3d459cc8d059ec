"""Programs drawn by hypothesis, of one rank and of many: whatever operations may follow each other."""

from __future__ import annotations

from hypothesis import strategies as st

from bench.simulate.host_program import (
    MAIN,
    Allocate,
    Busy,
    Collective,
    Engine,
    Initialise,
    Launch,
    Machine,
    Operation,
    Place,
    Program,
    Record,
    Spin,
    StreamWait,
    Synchronise,
    Work,
)

STREAMS = {Engine.COPY_TO_HOST: (7,), Engine.COPY_TO_DEVICE: (8,)}
SOME = st.integers(1, 60)


@st.composite
def works(draw: st.DrawFn) -> Work:
    """A piece of work; copies of one direction keep to one stream, so no two are ready at once."""
    engine = draw(st.sampled_from(tuple(Engine)))
    gap_ns, peer_ns = draw(st.integers(1, 4)), draw(st.integers(0, 40))
    return Work(
        "some", engine, draw(st.sampled_from(STREAMS.get(engine, (7, 8, 9)))), draw(SOME),
        Place(0, 0, 0, "forward", "some"), draw(st.integers(1, 150)),
        peer_ns if engine is Engine.COMMUNICATION else 0, gap_ns, draw(st.integers(1, gap_ns)),
        draw(st.integers(1, 12)),
    )  # fmt: skip


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    """What one thread does; every event is recorded once, before it is waited for."""
    said: list[Operation] = []
    for number in range(draw(st.integers(1, 15))):
        events = [one.event for one in said if isinstance(one, Record)]
        marks = [one.mark for one in said if isinstance(one, Launch) and one.mark is not None]
        stream, api_ns = draw(st.sampled_from((7, 8, 9))), draw(st.integers(1, 5))
        several: list[Operation] = [
            Busy(draw(SOME)),
            Record(number, stream, api_ns),
            Synchronise(draw(st.sampled_from(("stream", "device"))), stream, api_ns, draw(SOME)),
            Allocate(draw(SOME), 1, draw(st.booleans())),
            Initialise("load", draw(SOME)),
            *(StreamWait(event, stream, api_ns) for event in events),
            *(Synchronise("event", event, api_ns, draw(SOME)) for event in events[-1:]),
            *(Spin(mark, draw(SOME)) for mark in marks[-1:]),
        ]
        work = draw(works())
        returns = {Engine.COPY_TO_HOST: "d2h", Engine.COPY_TO_DEVICE: "h2d"}.get(work.engine)
        returns = returns if draw(st.booleans()) else None
        graph = (work, work) if draw(st.booleans()) and returns is None else (work,)
        mark = draw(st.sampled_from((None, 100 + number)))
        launch: Operation = Launch(
            "launch", graph, draw(SOME), api_ns, returns_with=returns, return_ns=9, mark=mark
        )
        said.append(draw(st.sampled_from([launch, launch, *several])))
    return said


PLACE = Place(0, 0, 0, "forward", "some")


@st.composite
def joint_programs(draw: st.DrawFn) -> dict[int, Program]:
    """Programs of 2 to 4 ranks. All launch their collectives in one order, so that none waits for ever."""
    ranks = range(draw(st.integers(2, 4)))
    said = {rank: draw(operations()) for rank in ranks}
    places = dict.fromkeys(ranks, 0)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(draw(st.integers(1, 6))):
        group = tuple(sorted(draw(st.sets(st.sampled_from(ranks), min_size=1))))
        sequence = counts[group] = counts.get(group, -1) + 1
        for rank in group:
            places[rank] = draw(st.integers(places[rank], len(said[rank])))
            launch = draw(collectives(Collective(group, "ep", sequence, draw(SOME))))
            said[rank].insert(places[rank], launch)
            places[rank] += 1
    machine = Machine(100, draw(st.sampled_from((1, 2, 3, 1022))), draw(st.sampled_from((0.0, 0.05, 0.5))))
    return {rank: Program(machine, {MAIN: said[rank]}) for rank in ranks}


@st.composite
def collectives(draw: st.DrawFn, collective: Collective) -> Launch:
    """The launch of one rank's part, whose work has times of its own that must not count."""
    gap_ns, stream = draw(st.integers(1, 4)), draw(st.sampled_from((7, 8, 9)))
    work = Work(
        "all", Engine.COMMUNICATION, stream, draw(SOME), PLACE, draw(st.integers(1, 60)),
        draw(SOME), gap_ns, draw(st.integers(1, gap_ns)), draw(st.integers(1, 12)),
    )  # fmt: skip
    return Launch("launch", (work,), draw(SOME), draw(st.integers(1, 5)), collective=collective)
