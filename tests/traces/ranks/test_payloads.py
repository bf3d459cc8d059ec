"""What NCCL's calls say of each kernel: messages, bytes, and nothing that is not certain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.recordings.launches import GATHER, GEMM, SENDRECV, Line, rank_of
from tests.recordings.payloads import collective, init, with_payloads
from traces.ranks.collectives import Called, called_by
from traces.ranks.summary import UNKNOWN
from traces.resolve.communication import communication_of

Export = Callable[..., Path]


def called(export: Export, line: Line) -> Called:
    return called_by(communication_of(rank_of(with_payloads(export(line.recording), line.blob_at))))


def test_an_exchange_counts_its_messages_and_adds_up_its_bytes(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 8))
    line.exchange(2, 4)
    line.exchange(5, receive=False)
    line.all(GEMM)
    found = called(export, line)
    assert (found.sends.tolist(), found.receives.tolist()) == ([2, 1], [2, 0])
    assert (found.given_bytes.tolist(), found.received_bytes.tolist()) == ([2_000, 1_000], [2_000, 0])
    assert found.ranks.tolist() == [8, 8]
    assert found.calls[[0, 2, 3, 4]].T.tolist() == [
        [0, 2, 1_000, 0],
        [0, 4, 1_000, 0],
        [0, 2, 0, 1_000],
        [0, 4, 0, 1_000],
        [1, 5, 1_000, 0],
    ]


def test_a_collective_gives_what_it_names_and_an_all_to_all_that_for_every_rank(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4))
    line.call("ncclAllGather", collective(7, 500), GATHER)
    line.call("ncclAlltoAll", collective(7, 500), SENDRECV)
    line.all(GEMM)
    found = called(export, line)
    assert found.given_bytes.tolist() == [500, 2_000]
    assert found.received_bytes.tolist() == [UNKNOWN, UNKNOWN]


def test_a_group_without_payloads_counts_messages_and_tells_no_bytes(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4))
    line.group(2, 1)
    line.all(GEMM)
    found = called(export, line)
    assert (found.sends.tolist(), found.receives.tolist()) == ([2], [1])
    assert (found.given_bytes.tolist(), found.received_bytes.tolist()) == ([UNKNOWN], [UNKNOWN])
