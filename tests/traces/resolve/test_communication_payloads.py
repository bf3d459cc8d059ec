"""What NCCL's payloads say of peers and communicators settles what an exchange is."""

from __future__ import annotations

from tests.places import Export
from tests.recordings.launches import GATHER, GEMM, ROUTER, Line, kinds, rank_of, told
from tests.recordings.payloads import init, send, with_payloads
from traces.timeline import RankTimeline


def rank(export: Export, line: Line) -> RankTimeline:
    return rank_of(with_payloads(export(line.recording), line.blob_at))


def without(export: Export, line: Line) -> RankTimeline:
    """The same recording exported without blobs."""
    return rank_of(export(line.recording, "without.sqlite"))


def two_of_two(init_text: str) -> Line:
    """Expert work somewhere, and an exchange with ranks 0 and 1 of a communicator that counts two."""
    line = Line()
    line.call(init_text, init(7, 2))
    line.all(ROUTER, GEMM)
    line.exchange(0, 1)
    line.all(GEMM)
    return line


def test_an_exchange_with_all_ranks_of_a_communicator_of_two_is_an_all_to_all(export: Export) -> None:
    (row,) = told(rank(export, two_of_two("ncclCommInitRankConfig")))
    assert (row[0], row[1], row[3], row[4]) == ("ep_a2a", "a2a", "nccl_groups", "high")


def test_a_split_counts_the_ranks_of_its_parent_so_it_settles_nothing(export: Export) -> None:
    assert kinds(rank(export, two_of_two("ncclCommSplit"))) == ["sendrecv_unresolved"]


def test_a_small_exchange_on_the_communicator_of_an_all_to_all_is_one(export: Export) -> None:
    line = Line()
    line.all(ROUTER, GEMM)
    line.exchange(0, 1, 2, stream=7)
    line.all(GEMM)
    line.exchange(2, stream=7)  # on compute's stream, so the stream says nothing
    line.all(GEMM)
    assert kinds(rank(export, line)) == ["ep_a2a", "ep_a2a"]
    assert kinds(without(export, line)) == ["ep_a2a", "pp_p2p"]


def test_a_stream_of_two_communicators_gives_neither_the_shape_of_the_other(export: Export) -> None:
    line = Line()
    line.all(ROUTER, GEMM)
    line.exchange(0, 1, 2)
    line.all(GEMM)
    line.exchange(5, communicator=8)
    line.all(GEMM)
    assert kinds(rank(export, line)) == ["ep_a2a", "pp_p2p"]
    assert kinds(without(export, line)) == ["ep_a2a", "ep_a2a"]


def test_what_is_named_on_a_communicator_names_the_rest_of_it(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    for place, communicator in enumerate((7, 7, 7, 8)):
        begin = line.now * 1_000
        if place < 2:
            line.recording.range("FSDP::all_gather", begin - 10, begin + 4_500)
        line.call("ncclAllGather", send(communicator, 8, peer=0), GATHER, stream=7)
        line.all(GEMM)
    rows = told(rank(export, line))
    assert [(row[0], row[3], row[4]) for row in rows] == [
        *(("dp_all_gather", "nvtx_range", "high"), ("dp_all_gather", "nvtx_range", "high")),
        *(("dp_all_gather", "communicator", "medium"), ("other_comm", "name", "low")),
    ]
