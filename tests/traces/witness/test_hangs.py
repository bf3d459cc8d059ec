"""Hangs of four kinds: dumps of real PyTorch processes (`tests.recordings.hang_by_torch`) and made ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reports.content.analysis.hang import hang_words
from tests.places import ROOT
from traces.missing import Missing
from traces.names.process_groups import operation_named
from traces.sections.hang import HangKind, WitnessSource
from traces.witness.dump import Dump, Entered, GroupSaid
from traces.witness.hang import _name, find_hang
from traces.witness.read import read_witnesses

SAMPLES = ROOT / "tests" / "data" / "witness"
EXPERT = ("7", (4, 5, 6, 7))
DATA = ("9", (1, 5))
Ranks = tuple[int, ...]


@pytest.mark.parametrize("pattern", ["trace_rank_?", "*.json"])
@pytest.mark.parametrize(
    ("kind", "group", "missing", "entered", "elsewhere"),
    [
        (HangKind.MISSING_RANK, "EXPERT_MODEL_PARALLEL_GROUP", (3,), (2,), []),
        (HangKind.OTHER_OPERATION, "default_pg", (3,), (0, 1, 2), ["default_pg ALLGATHER"]),
        (HangKind.OTHER_ORDER, "EXPERT_MODEL_PARALLEL_GROUP", (1,), (0,), ["default_pg ALLREDUCE"]),
    ],
)
def test_dumps_of_torch_tell_the_kind_of_a_hang_and_its_ranks(
    kind: HangKind, group: str, missing: Ranks, entered: Ranks, elsewhere: list[str], pattern: str
) -> None:
    dumps, failed = read_witnesses(sorted((SAMPLES / kind.value).glob(pattern)))
    assert not failed
    hang = find_hang(dumps)
    assert hang is not None
    assert (hang.kind, hang.group, hang.operation) == (kind, group, "ALLREDUCE")
    assert (hang.ranks_missing, hang.ranks_entered) == (missing, entered)
    if kind is HangKind.MISSING_RANK:
        assert (hang.sequence, hang.settings) == (2, ("expert_model_parallel_size",))
    else:
        assert [f"{one.group} {one.operation}" for one in hang.elsewhere] == elsewhere


def entered(sequence: int, *, group=EXPERT, finished=True, operation="ALLREDUCE", size="8 Float") -> Entered:  # type: ignore[no-untyped-def]
    return Entered(group, sequence, operation, size, finished, 1000 + sequence, None)


def dump(rank: int, *several: Entered) -> Dump:
    groups = {EXPERT: GroupSaid("EXPERT_MODEL_PARALLEL_GROUP", 4), DATA: GroupSaid("DATA_PARALLEL_GROUP", 2)}
    mine = {key: one for key, one in groups.items() if rank in key[1]}
    return Dump(rank, WitnessSource.FLIGHT_RECORDER, mine, several)


def waiting_for_five() -> list[Dump]:
    others = [dump(rank, entered(811), entered(812, finished=False)) for rank in (4, 6, 7)]
    return [*others, dump(5, entered(811))]


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


GROUPS = {"E": (EXPERT, 4), "D": (DATA, 2), "F": (("8", (5, 9)), 2)}
OPERATIONS = {"r": "ALLREDUCE", "b": "BROADCAST", "t": "ALLTOALL"}


def dumps_said(text: str) -> list[Dump]:
    """A word a rank: `5:D30r,E812b4!` is in D's 30th, an all-reduce; in E it broadcasts 4, unfinished.

    `E?812` says that the last it entered is 812, which the dump no longer holds.
    """
    found = []
    for word in text.split():
        number, _, several = word.partition(":")
        entries, last = [], {}
        for one in several.split(","):
            key = GROUPS[one[0]][0]
            if "?" in one:
                last[key] = int(one[2:])
                continue
            said = re.fullmatch(r".(\d+)([rbt])(\d*)(!?)", one)
            assert said
            about = {"operation": OPERATIONS[said[2]], "size": f"{said[3] or 8} Float"}
            entries.append(entered(int(said[1]), group=key, finished=not said[4], **about))
        mine = (pair for pair in GROUPS.values() if int(number) in pair[0][1])
        groups = {key: GroupSaid("", size, last.get(key)) for key, size in mine}
        found.append(Dump(int(number), WitnessSource.FLIGHT_RECORDER, groups, tuple(entries)))
    return found


@pytest.mark.parametrize(
    ("text", "kind", "group", "sequence", "missing"),
    [
        ("4:E8r! 6:E8r! 7:E8r! 5:E?8", HangKind.TRANSFER, "7", 8, ()),  # its dump has lost it
        ("4:E8r! 6:E8r! 7:E8r! 5:E?7", HangKind.MISSING_RANK, "7", 8, (5,)),
        ("4:E50r! 5:E50r4!,D30r! 6:E50r! 7:E50r!", HangKind.OTHER_SIZE, "7", 50, (5,)),  # 1 has no dump
        ("4:E50r! 5:E50r!,D30r! 6:E50r! 1:D30r!", HangKind.MISSING_RANK, "7", 50, None),  # before a transfer
        ("4:E1r!,E2r 5:E1r! 6:E1r! 7:E0r", HangKind.MISSING_RANK, "7", 1, (7,)),
        ("4:E1r,E2r 5:E1r,E2r4 6:E1r,E2r 7:E1r,E2r", HangKind.OTHER_SIZE, "7", 2, (5,)),  # gloo fails there
        ("4:E2r 5:E2r4 6:E2r 7:E2r,E3r", None, "", 0, ()),  # one went on
        ("4:E1r!,E2b! 5:E1b! 6:E1r! 7:E1r!", HangKind.OTHER_OPERATION, "7", 1, (5,)),
        ("4:E1r! 5:E1b! 6:E1r! 7:E1b!", HangKind.OTHER_OPERATION, "7", 1, (5, 7)),  # of equals the lowest
        ("4:E8r! 6:E8r! 7:E8r! 5:D3r! 1:D3r!", HangKind.MISSING_RANK, "7", 8, (5,)),  # no transfer
        ("4:E8r! 6:E8r! 7:E8r! 5:D30r!,F20r! 1:D2r", HangKind.MISSING_RANK, "9", 30, (1,)),  # 9 has no dump
        ("4:E1t8! 5:E1t4! 6:E1t! 7:E1t!", HangKind.TRANSFER, "7", 1, ()),
        ("4:E1r 5:E1r! 6:E1r! 7:E1r!", None, "", 0, ()),  # what one finished the others will
    ],
)
def test_a_hang_is_the_first_that_somebody_is_known_to_hold_up(
    text: str, kind: HangKind | None, group: str, sequence: int, missing: Ranks | None
) -> None:
    hang = find_hang(dumps_said(text))
    if hang is None:
        assert kind is None
        return
    assert (hang.kind, hang.group, hang.sequence) == (kind, f"process group {group}", sequence)
    assert (None if isinstance(hang.ranks_missing, Missing) else hang.ranks_missing) == missing


def test_a_group_without_a_known_name_has_its_number_where_that_is_short() -> None:
    unknown = "process group without a known name"
    for number, said in (("1234567", "process group 1234567"), ("12345678", unknown), ("x", unknown)):
        assert _name(GroupSaid(""), (number, ())) == said


def test_of_who_is_missing_the_last_that_it_entered_is_told() -> None:
    hang = find_hang(dumps_said("4:E8r! 6:E8r! 7:E8r! 5:E7r,D3r 1:D3r"))
    assert hang is not None
    assert [(one.ranks, one.sequence) for one in hang.elsewhere] == [((5,), 7)]


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("nccl:_all_gather_base", "ALLGATHER"), ("gloo:all_to_all", "ALLTOALL"),
        ("_REDUCE_SCATTER_BASE", "REDUCE_SCATTER"), ("AllReduce", "ALLREDUCE"), ("nccl:send 0->1", "SEND"),
        ("nccl:all_reduce_barrier", "BARRIER"), ("something else", "OTHER"),
    ],
)  # fmt: skip
def test_operations_are_named_alike_whoever_writes_them(text: str, operation: str) -> None:
    assert operation_named(text) == operation
