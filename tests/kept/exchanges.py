"""Small random runs of what NCCL exchanges: groups, payloads, ranges, streams and neighbours in any order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from bench.simulate.export import write_export
from tests.recordings.launches import (
    ADAM,
    ATTENTION,
    FILL,
    GATHER,
    GEMM,
    GROUPED,
    NORM,
    NORM_BACKWARD,
    PERMUTE,
    ROUTER,
    SCATTER,
    SORT,
    UNPERMUTE,
    Line,
    moe_layer,
)
from tests.recordings.payloads import collective, init, with_payloads

COMPUTE: Final = (
    ATTENTION, FILL, GEMM, GROUPED, NORM, NORM_BACKWARD, PERMUTE, ROUTER, SORT, UNPERMUTE, GROUPED, PERMUTE,
)  # fmt: skip
RANGES: Final = (
    "moe_dispatch forward", "combine", "MoEAlltoAllTokenDispatcher", "nccl:all_to_all", "p2p_communication",
    "forward_step", "ncclAllToAll", "all_gather", "tp_comm_overlap", "context_parallel", "pp_send_recv",
)  # fmt: skip
INITS: Final = ("ncclCommInitRankConfig", "ncclCommInitRank", "ncclCommSplit")


def draw_exchanges(seed: int, path: Path) -> None:
    """Write a run of one to four steps that repeat some twenty operations, now and then without one."""
    dice, line = Random(seed), Line()
    for communicator in range(7, 7 + dice.choice((0, 1, 2, 3))):
        own = dice.choice((0, 1, -1))
        line.call(dice.choice(INITS), init(communicator, dice.choice((2, 4, 8)), own))
    operations = [_operation(dice) for _ in range(dice.randint(4, 20))]
    for step in range(dice.randint(1, 4)):
        begin = line.now
        for operate in operations:
            if dice.random() > 0.05:
                operate(line)
        line.run(ADAM)
        if seed % 2:
            line.recording.range(f"iteration {step}", begin * 1_000, line.now * 1_000 - 500)
    write_export(path, line.recording)
    with_payloads(path, line.blob_at)


def _operation(dice: Random) -> Callable[[Line], None]:
    """One operation, the same in each step."""
    stream, communicator = dice.choice((20, 20, 20, 7, 24)), dice.choice((7, 7, 8, 9))
    sends, receives = dice.choice(((4, 4), (2, 2), (1, 1), (1, 0), (0, 1), (3, 1), (8, 8)))
    peers = tuple(dice.sample(range(8), sends or 1))
    what = dice.choice(
        ("compute", "compute", "layer", "group", "exchange", "bare", "within", "call", "collective")
    )
    names = [dice.choice(COMPUTE) for _ in range(dice.randint(1, 4))]
    text, receive, gather = dice.choice(RANGES), dice.random() < 0.8, dice.choice((GATHER, SCATTER))
    size = dice.choice((8, 1_000, 4_000_000))
    does: dict[str, Callable[[Line], None]] = {
        "compute": lambda line: line.all(*names),
        "layer": lambda line: moe_layer(line, lambda: line.group(sends, receives, stream=stream)),
        "group": lambda line: line.group(sends, receives, stream=stream),
        "exchange": lambda line: line.exchange(
            *peers, communicator=communicator, stream=stream, receive=receive
        ),
        "bare": lambda line: line.run(gather, stream, 30),
        "within": lambda line: line.within(text, stream=stream),
        "call": lambda line: line.call("ncclAllGather", collective(communicator, size), GATHER, stream),
        "collective": lambda line: line.call(
            "ncclReduceScatter", collective(communicator, size), SCATTER, stream
        ),
    }
    return does[what]
