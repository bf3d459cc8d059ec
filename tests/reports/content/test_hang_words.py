"""What is said of a hang of each kind, and of ranks that a second witness shows."""

from __future__ import annotations

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from heuristics.result.result import Result
from reports.content.analysis.hang import hang_words, witness_lines
from reports.content.names import plain
from tests.doubles.result import double
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


def test_a_transfer_that_never_ends_blames_no_rank() -> None:
    said = "ALLREDUCE seq 9 of TENSOR_MODEL_PARALLEL_GROUP: all its 4 ranks entered it, and none finished it."
    assert hang_words(HANG) == said


def test_a_timeout_says_who_gave_up_and_that_the_other_is_unknown() -> None:
    timeout = replace(HANG, kind=HangKind.TIMEOUT, group="", ranks_entered=(3,))
    assert (
        hang_words(timeout)
        == "ALLREDUCE seq 9: rank 3 gave up waiting; the rank that did not arrive is unknown."
    )
    nobody = replace(timeout, ranks_entered=())
    assert "a rank gave up waiting; the rank that did not arrive is unknown" in hang_words(nobody)


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


NOT_TIMED = Missing("", "no times", "record them")
RANKS = tuple(WitnessedRank(rank, rank == 0, 5, 5, 0, 2_000_000 * rank, rank) for rank in range(2))


def witness(latest: int | Missing | None, part: float | Missing | None) -> str:
    found = Witness((WitnessSource.INSPECTOR,), 2, RANKS, 10, latest, part, part)
    return " ".join(plain(line.said) for line in witness_lines(double(Result, witness=found)))


def test_ranks_that_nobody_profiled_are_counted_and_the_last_one_named() -> None:
    assert witness(1, 0.5) == (
        "2 ranks by NCCL Inspector, 1 of them not profiled; of 10 timed collectives rank 1 arrives last "
        "in 50 %, and the others wait 2.00 ms for it"
    )
    assert "no rank waits in 10 timed collectives" in witness(None, None)
    assert "their collectives are not timed" in witness(NOT_TIMED, NOT_TIMED)
    assert list(witness_lines(double(Result, witness=UNSET))) == []
