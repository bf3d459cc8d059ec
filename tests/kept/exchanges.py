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
    SENDRECV,
    SORT,
    UNPERMUTE,
    Line,
    moe_layer,
)
from tests.recordings.payloads import collective, init, with_payloads

AUTOGRAD: Final = 1001
"""The thread of the backward pass: beside 1000, the main one."""
COMPUTE: Final = (
    ATTENTION, FILL, GEMM, GROUPED, NORM, NORM_BACKWARD, PERMUTE, ROUTER, SORT, UNPERMUTE, GROUPED, PERMUTE,
)  # fmt: skip
RANGES: Final = (
    "moe_dispatch forward", "combine", "MoEAlltoAllTokenDispatcher", "nccl:all_to_all", "p2p_communication",
    "forward_step", "ncclAllToAll", "all_gather", "tp_comm_overlap", "context_parallel", "pp_send_recv",
)  # fmt: skip
AROUND: Final = (
    "forward", "backward", "moe_dispatch(B)", "combine(B)", "dispatch(F)", "backward forward", "Checkpoint",
    "CheckpointFunctionBackward forward", "layer_3f-layer_5b", "layer_2f", "layers.12.mlp", "layer 0",
    "layer 123456", "layers[4] backward, seq = 3, op_id = 4", "moe_combine backward", "HybridEPDispatch",
    "send_forward", "AttnFuncWithCP", "FSDP::all_gather", "grad_sync", "tensor_parallel.linear", "nccl:send",
    "forward.ub_fc1_comm", "c10d::alltoall_base_", "autograd::engine::evaluate_function: AddBackward0",
    "GroupedMlp forward", "optimizer_step", "nccl:coalesced", "Ulysses", "player 7",
)  # fmt: skip
COMMUNICATION: Final = (
    GATHER, SCATTER, SENDRECV, "void deep_ep::intranode::dispatch<8>(int*)",
    "void deep_ep::intranode::combine<8>(int*)", "void deep_ep::intranode::notify_dispatch<8>(int*)",
    "void deep_ep::internode::dispatch<8>(int*)", "void deep_ep::internode_ll::combine<8>(int*)",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_AllReduce_RING_LL",
    "void hybrid_ep::dispatch_kernel<8>(int*)", "void hybrid_ep::combine_kernel<8>(int*)",
)  # fmt: skip
COUNTS: Final = (
    (4, 4), (2, 2), (1, 1), (1, 0), (0, 1), (3, 1), (8, 8), (2, 1), (1, 2), (2, 0), (0, 3), (2, 3),
)  # fmt: skip
KINDS: Final = (
    "compute", "layer", "backward", "group", "exchange", "bare", "within", "call", "named", "engine",
    "generic", "gathers",
)  # fmt: skip
ENGINES: Final = ("ncclAllGather", "ncclAlltoAll", "ncclGather")
TOLD: Final = ("nccl:all_to_all", "nccl:_all_gather_base", "ncclReduceScatter", "nccl:all_reduce", "ncclSend")
INITS: Final = ("ncclCommInitRankConfig", "ncclCommInitRank", "ncclCommSplit")


def draw_exchanges(seed: int, path: Path) -> None:
    """Write a run of one to four steps that repeat some twenty operations, now and then without one."""
    line = exchanged(seed)
    write_export(path, line.recording)
    with_payloads(path, line.blob_at)


def exchanged(seed: int) -> Line:
    """The same as a recording, and its payloads."""
    dice, line = Random(seed), Line()
    for communicator in range(7, 7 + dice.choice((0, 1, 2, 3))):
        own = dice.choice((0, 1, -1))
        line.call(dice.choice(INITS), init(communicator, dice.choice((2, 4, 8)), own))
    palette = _Palette(dice)
    operations = [palette.operation() for _ in range(dice.randint(2, 16))]
    misses = dice.choice((0, 0, 0.05))
    for step in range(dice.choice((1, 2, 3, 6))):
        begin = line.now
        for operate in operations:
            if dice.random() >= misses:
                operate(line)
        if dice.random() < 5 * misses:
            line.run(dice.choice(COMPUTE), dice.choice((7, 9)), dice.choice((3, 200)), tid=AUTOGRAD)
        line.run(ADAM)
        if seed % 2:
            line.recording.range(f"iteration {step}", begin * 1_000, line.now * 1_000 - 500)
    return line


class _Palette:
    """What operations of one run are drawn from: a few kinds of each thing, as real runs have."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._kinds = dice.sample(KINDS, 4)
        self._names = dice.sample(COMPUTE, dice.randint(2, 6))
        self._around = dice.sample(AROUND, dice.randint(1, 4))
        self._communication = dice.sample(COMMUNICATION, 3)
        self._streams = dice.choice(((20,), (20, 24), (7,), (20, 7, 24)))
        self._counts = dice.sample(COUNTS, 2)

    def operation(self) -> Callable[[Line], None]:
        """One operation, the same in each step."""
        dice = self._dice
        stream, communicator = dice.choice(self._streams), dice.choice((7, 7, 8, 9))
        sends, receives = dice.choice(self._counts)
        peers = tuple(dice.sample(range(8), sends or 1))
        names = [dice.choice(self._names) for _ in range(dice.randint(1, 4))]
        text, receive, name = dice.choice(RANGES), dice.random() < 0.8, dice.choice(self._communication)
        of_call = collective(communicator, dice.choice((8, 1_000, 4_000_000)))
        call, kernel = dice.choice((("ncclAllGather", GATHER), ("ncclReduceScatter", SCATTER)))
        does: dict[str, Callable[[Line], None]] = {
            "compute": lambda line: line.all(*names),
            "layer": lambda line: moe_layer(line, lambda: line.group(sends, receives, stream=stream)),
            "backward": lambda line: _backward(line, sends, receives, stream),
            "group": lambda line: line.group(sends, receives, stream=stream),
            "exchange": lambda line: line.exchange(
                *peers, communicator=communicator, stream=stream, receive=receive
            ),
            "bare": lambda line: line.run(name, stream, 30),
            "within": lambda line: line.within(text, stream=stream),
            "call": lambda line: line.call(call, of_call, kernel, stream),
            "named": lambda line: line.within(text, name, stream),
            "engine": lambda line: _by_copies(line, dice.choice(ENGINES), of_call, receives),
            "generic": lambda line: line.within(dice.choice(TOLD), "ncclDevKernel_Generic", stream),
            "gathers": lambda line: _by_gathers(line, dice.random() < 0.7, stream),
        }
        operate = does[dice.choice(self._kinds)]
        around = dice.sample(self._around, min(len(self._around), dice.choice((0, 0, 1, 1, 2))))
        return lambda line: _within(line, around, operate)


def _backward(line: Line, sends: int, receives: int, stream: int) -> None:
    """The backward of a layer, launched by autograd's thread."""
    for name in (NORM_BACKWARD, UNPERMUTE, GROUPED, PERMUTE, f"{ATTENTION}_bwd", NORM_BACKWARD):
        if name in (UNPERMUTE, PERMUTE):
            line.group(sends, receives, stream=stream)
        line.run(name, tid=AUTOGRAD)


def _by_copies(line: Line, text: str, blob: bytes, copies: int) -> None:
    """A collective that NCCL's copy engines do, by a call or at the end of a group."""
    begin = line.now * 1_000
    names = ("ncclGroupStart", text, "ncclGroupEnd") if copies % 2 else (text,)
    for place, name in enumerate(names):
        line.recording.range(name, begin + 900 * place, begin + 900 * place + 800, domain=1, registered=True)
    line.blob_at[begin + 900 * names.index(text)] = blob
    for place in range(copies):
        at = begin + 900 * (len(names) - 1) + 100 * place
        line.recording.copy(
            "d2d", at + 5_000, at + 9_000, size_bytes=1 << 20, stream=20 + place % 2, launch_ns=at + 50
        )
    line.now += 20


def _by_gathers(line: Line, permutes: bool, stream: int) -> None:
    """A forward layer whose tokens are gathered, and scattered behind the experts."""
    line.all(NORM, ATTENTION, NORM, ROUTER)
    line.run(GATHER, stream)
    line.all(*((PERMUTE, GROUPED, UNPERMUTE) if permutes else (GROUPED,)))
    line.run(SCATTER, stream)


def _within(line: Line, around: list[str], operate: Callable[[Line], None]) -> None:
    begin = line.now * 1_000
    operate(line)
    for depth, text in enumerate(around, start=1):
        line.recording.range(text, begin - depth, line.now * 1_000 + depth - 100)
