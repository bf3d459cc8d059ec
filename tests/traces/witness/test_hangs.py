"""Hangs of four kinds: dumps of real PyTorch processes (`tests.recordings.hang_by_torch`) and made ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.content.analysis.hang import hang_words
from tests.places import ROOT
from traces.missing import Missing
from traces.names.process_groups import operation_named
from traces.sections.hang import Hang, HangKind, WitnessSource
from traces.witness.dump import Dump, Entered, GroupSaid
from traces.witness.hang import find_hang
from traces.witness.read import read_witnesses

SAMPLES = ROOT / "tests" / "data" / "witness"
EXPERT = ("7", (4, 5, 6, 7))
DATA = ("9", (1, 5))


def by_torch(kind: str, pattern: str) -> Hang | None:
    dumps, failed = read_witnesses(sorted((SAMPLES / kind).glob(pattern)))
    assert not failed
    return find_hang(dumps)


@pytest.mark.parametrize("pattern", ["trace_rank_?", "*.json"])
def test_a_rank_that_stays_away_from_its_experts_is_named(pattern: str) -> None:
    hang = by_torch("missing_rank", pattern)
    assert hang is not None
    assert hang.kind is HangKind.MISSING_RANK
    assert (hang.group, hang.operation, hang.sequence) == ("EXPERT_MODEL_PARALLEL_GROUP", "ALLREDUCE", 2)
    assert (hang.ranks_missing, hang.ranks_entered) == ((3,), (2,))
    assert hang.settings == ("expert_model_parallel_size",)


@pytest.mark.parametrize("pattern", ["trace_rank_?", "*.json"])
def test_a_rank_that_enters_another_operation_is_named(pattern: str) -> None:
    hang = by_torch("other_operation", pattern)
    assert hang is not None
    assert (hang.kind, hang.group, hang.operation) == (HangKind.OTHER_OPERATION, "default_pg", "ALLREDUCE")
    assert (hang.ranks_missing, hang.ranks_entered) == ((3,), (0, 1, 2))
    assert [one.operation for one in hang.elsewhere] == ["ALLGATHER"]


@pytest.mark.parametrize("pattern", ["trace_rank_?", "*.json"])
def test_ranks_that_call_two_groups_in_another_order_wait_for_each_other(pattern: str) -> None:
    hang = by_torch("other_order", pattern)
    assert hang is not None
    assert (hang.kind, hang.group) == (HangKind.OTHER_ORDER, "EXPERT_MODEL_PARALLEL_GROUP")
    assert (hang.ranks_missing, hang.ranks_entered) == ((1,), (0,))
    assert {one.group for one in hang.elsewhere} == {"default_pg"}


def entered(sequence: int, *, group=EXPERT, finished=True, operation="ALLREDUCE", size="8 Float") -> Entered:  # type: ignore[no-untyped-def]
    return Entered(group, sequence, operation, size, finished, 1000 + sequence, None)


def dump(rank: int, *several: Entered) -> Dump:
    groups = {EXPERT: GroupSaid("EXPERT_MODEL_PARALLEL_GROUP", 4), DATA: GroupSaid("DATA_PARALLEL_GROUP", 2)}
    mine = {key: one for key, one in groups.items() if rank in key[1]}
    return Dump(rank, WitnessSource.FLIGHT_RECORDER, mine, several)


def waiting_for_five() -> list[Dump]:
    others = [dump(rank, entered(811), entered(812, finished=False)) for rank in (4, 6, 7)]
    return [*others, dump(5, entered(811))]


def test_the_sentence_says_who_never_entered_what() -> None:
    hang = find_hang(waiting_for_five())
    assert hang is not None
    assert hang_words(hang).startswith(
        "ALLREDUCE seq 812 of EXPERT_MODEL_PARALLEL_GROUP: rank 5 never entered; ranks 4, 6, 7 wait"
    )


def test_what_the_ring_no_longer_holds_is_not_missing() -> None:
    """Rank 5 went on to 900: its dump has lost 812, which it entered."""
    late = [dump(rank, entered(812), entered(900, finished=False)) for rank in (4, 6, 7)]
    ahead = dump(5, entered(899), entered(900, finished=False))
    hang = find_hang([*late, ahead])
    assert hang is not None
    assert (hang.kind, hang.sequence) == (HangKind.TRANSFER, 900)


def test_a_rank_that_waits_in_another_group_is_followed_to_who_is_missing_there() -> None:
    """Ranks 4, 6, 7 wait for 5; 5 waits for 1, which is nowhere."""
    held = dump(5, entered(811), entered(30, group=DATA, finished=False))
    hang = find_hang([*waiting_for_five()[:3], held, dump(1, entered(29, group=DATA))])
    assert hang is not None
    assert (hang.kind, hang.group, hang.ranks_missing) == (HangKind.MISSING_RANK, "DATA_PARALLEL_GROUP", (1,))


def test_a_rank_without_a_dump_is_silent_and_not_called_missing() -> None:
    hang = find_hang(waiting_for_five()[:3])
    assert hang is not None
    assert hang.ranks_silent == (5,)
    assert isinstance(hang.ranks_missing, Missing)
    assert "no dump of rank 5" in hang_words(hang)


def test_two_calls_in_turn_on_one_group_are_another_order() -> None:
    first = [
        entered(1, operation="ALLREDUCE", finished=False),
        entered(2, operation="BROADCAST", finished=False),
    ]
    second = [
        entered(1, operation="BROADCAST", finished=False),
        entered(2, operation="ALLREDUCE", finished=False),
    ]
    dumps = [dump(4, *first), dump(5, *second), dump(6, *first), dump(7, *first)]
    hang = find_hang(dumps)
    assert hang is not None
    assert (hang.kind, hang.ranks_missing) == (HangKind.OTHER_ORDER, (5,))


def test_other_sizes_of_an_all_to_all_are_no_fault() -> None:
    several = [
        dump(rank, entered(1, operation="ALLTOALL", size=f"{rank} Float"), entered(2))
        for rank in (4, 5, 6, 7)
    ]
    assert find_hang(several) is None


def test_finished_collectives_of_inspector_are_no_witness_of_a_hang() -> None:
    assert find_hang([replace(one, source=WitnessSource.INSPECTOR) for one in waiting_for_five()]) is None


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("nccl:_all_gather_base", "ALLGATHER"),
        ("gloo:all_to_all", "ALLTOALL"),
        ("ALLTOALL_BASE", "ALLTOALL"),
        ("_REDUCE_SCATTER_BASE", "REDUCE_SCATTER"),
        ("AllReduce", "ALLREDUCE"),
        ("nccl:reduce", "REDUCE"),
        ("nccl:scatter", "SCATTER"),
        ("nccl:send 0->1", "SEND"),
        ("nccl:all_reduce_barrier", "BARRIER"),
        ("something else", "OTHER"),
    ],
)
def test_operations_are_named_alike_whoever_writes_them(text: str, operation: str) -> None:
    assert operation_named(text) == operation
