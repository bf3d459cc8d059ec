"""What is said of a hang of each kind, and of ranks that a second witness shows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reports.content.analysis.hang import hang_words, witness_lines
from reports.content.names import plain
from tests.places import ROOT
from traces.missing import Missing
from traces.sections.hang import Hang, HangKind, RanksAt, Witness, WitnessedRank, WitnessSource
from traces.witness.hang import find_hang
from traces.witness.read import read_witnesses

SAMPLES = ROOT / "tests" / "data" / "witness"
HANG = Hang(
    HangKind.TRANSFER, WitnessSource.LOG, "TENSOR_MODEL_PARALLEL_GROUP", "ALLREDUCE", 9, (), (0, 1, 2, 3)
)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing_rank", "seq 2 of EXPERT_MODEL_PARALLEL_GROUP: rank 3 never entered; rank 2 waits."),
        ("other_operation", "of default_pg: ranks 0 to 2 entered it; rank 3 entered ALLGATHER instead."),
        ("other_size", "ranks 0, 3 entered it with 1,024 Float; rank 2 with 4,096 Float."),
        ("other_order", "the order of calls differs: rank 0 waits in it, ranks 1 to 3 in "),
    ],
)  # fmt: skip
def test_a_hang_that_real_processes_had_is_said(kind: str, said: str) -> None:
    dumps, _ = read_witnesses(sorted((SAMPLES / kind).glob("trace_rank_?")))
    hang = find_hang(dumps)
    assert hang is not None
    assert said in hang_words(hang)


def test_a_group_without_every_dump_says_who_is_silent_and_where_the_missing_one_was_last() -> None:
    last = RanksAt((2,), "default_pg", "BROADCAST", 4, True)
    hang = replace(
        HANG,
        kind=HangKind.MISSING_RANK,
        ranks_missing=(2,),
        ranks_entered=(0,),
        ranks_silent=(1, 3),
        elsewhere=(last,),
    )
    assert hang_words(hang) == (
        "ALLREDUCE seq 9 of TENSOR_MODEL_PARALLEL_GROUP: rank 2 never entered; no dump of ranks 1, 3; "
        "rank 0 waits. The last collective of rank 2: BROADCAST seq 4 of default_pg, finished."
    )
    unknown = replace(hang, ranks_missing=Missing("", "no dump of some", ""), ranks_silent=(), elsewhere=())
    assert "all ranks with a dump entered it; rank 0 waits" in hang_words(unknown)


RANKS = tuple(WitnessedRank(rank, rank == 0, 5, 5, 0, 2_000_000 * rank, rank) for rank in range(2))


def witness(latest: int | Missing | None, part: float | Missing | None) -> str:
    found = Witness((WitnessSource.INSPECTOR,), 2, RANKS, 10, latest, part, part)
    return " ".join(plain(line.said) for line in witness_lines(found))
