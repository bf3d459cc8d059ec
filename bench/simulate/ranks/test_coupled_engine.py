"""Ranks that run together, by times one can add in the head."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.simulate.engine import execute_ranks
from bench.simulate.host_program import (
    MAIN,
    Busy,
    Collective,
    Engine,
    Launch,
    Machine,
    Operation,
    Place,
    Program,
    Synchronise,
    Work,
)

PLACE = Place(0, 0, 0, "forward", "some")
BOTH = (0, 1)
Times = list[tuple[int, int]]


def compute(alone_ns: int, blocks: int = 100) -> Launch:
    """A call of 10 ns, whose kernel starts 5 ns later on an empty stream."""
    return Launch("launch", (Work("gemm_fwd", Engine.SMS, 7, alone_ns, PLACE, blocks, 0, 1, 2, 5),), 10)


def meet(
    group: tuple[int, ...], sequence: int, transfer_ns: int, stream: int = 20, name: str = "EP"
) -> Launch:
    """The same for a collective; its kernel holds 20 of 100 SMs."""
    work = Work("nccl_send_recv", Engine.COMMUNICATION, stream, 1, PLACE, 20, 0, 1, 2, 5)
    return Launch("launch", (work,), 10, collective=Collective(group, name, sequence, transfer_ns))


def ran(*ranks: Sequence[Operation]) -> list[Times]:
    """Start and end of each rank's GPU work, in order of submission."""
    programs = [Program(Machine(100), {MAIN: operations}) for operations in ranks]
    return [[(one.start_ns, one.end_ns) for one in done.activities] for done in execute_ranks(programs)]


def test_who_comes_early_waits_and_who_comes_last_only_moves() -> None:
    early, late = ran([meet(BOTH, 0, 30)], [Busy(100), meet(BOTH, 0, 30)])
    assert early == [(15, 115 + 30)]
    assert late == [(115, 115 + 30)]


def test_each_participant_ends_its_own_transfer_after_the_last_arrival() -> None:
    early, late = ran([meet(BOTH, 0, 300)], [Busy(100), meet(BOTH, 0, 30)])
    assert (early, late) == ([(15, 415)], [(115, 145)])


def test_a_wait_is_handed_on_to_a_group_of_which_the_late_rank_is_no_part() -> None:
    """Rank 2 is late for rank 1, which is therefore late for rank 0 on the same stream."""
    first, second, _ = ran(
        [meet((0, 1), 0, 30)],
        [meet((1, 2), 0, 30), meet((0, 1), 0, 30)],
        [Busy(1000), meet((1, 2), 0, 30)],
    )
    assert second == [(15, 1045), (1046, 1076)]
    assert first == [(15, 1076)]


def test_a_slower_device_is_late_by_what_its_kernel_takes_longer() -> None:
    """On the same stream, communication follows the kernel after 1 ns."""
    healthy, slow = ran(
        [compute(100), meet(BOTH, 0, 30, stream=7)], [compute(150), meet(BOTH, 0, 30, stream=7)]
    )
    assert healthy == [(15, 115), (116, 196)]
    assert slow == [(15, 165), (166, 196)]


def test_who_waits_holds_its_sms_from_its_own_start() -> None:
    """Compute that wants all SMs has 80 of 100 of them while its rank waits and moves."""
    early, _ = ran([meet(BOTH, 0, 30), compute(200)], [Busy(100), meet(BOTH, 0, 30)])
    assert early == [(15, 145), (25, 145 + 104)]  # 25 to 145 did 96 of its 200


def test_a_host_that_synchronises_waits_for_the_late_rank_too() -> None:
    program: list[Operation] = [meet(BOTH, 0, 30), Synchronise("stream", 20, 2, 7)]
    done = execute_ranks(
        [
            Program(Machine(100), {MAIN: program}),
            Program(Machine(100), {MAIN: [Busy(100), meet(BOTH, 0, 30)]}),
        ]
    )
    assert done[0].calls[1].end_ns == 145 + 7


def test_instances_are_told_apart_by_group_name_and_sequence() -> None:
    calls = [meet(BOTH, 0, 30), meet(BOTH, 1, 30), meet(BOTH, 0, 30, name="DP")]
    first, second = ran(list(calls), list(calls))
    assert first == second == [(15, 45), (46, 76), (77, 107)]


def test_all_of_eight_ranks_wait_for_the_last() -> None:
    everyone = tuple(range(8))
    programs: list[list[Operation]] = [[Busy(10 * rank), meet(everyone, 0, 5)] for rank in everyone]
    done = ran(*programs)
    assert [times[0] for times in done] == [(10 * rank + 15, 90) for rank in everyone]


def test_ranks_that_share_nothing_run_as_if_alone() -> None:
    alone = ran([compute(100), meet((0,), 0, 30)])[0]
    assert ran([compute(100), meet((0,), 0, 30)], [Busy(7), compute(3)])[0] == alone


@pytest.mark.parametrize(
    "other", [[], [meet(BOTH, 1, 30)], [meet((0, 1, 2), 0, 30)]], ids=["no call", "another", "other group"]
)
def test_a_collective_whose_peer_never_comes_is_refused(other: list[Operation]) -> None:
    with pytest.raises(ValueError, match="never comes"):
        ran([meet(BOTH, 0, 30)], other)


def test_a_rank_outside_the_group_and_one_that_comes_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="no part"):
        ran([meet((1, 2), 0, 30)])
    with pytest.raises(ValueError, match="no part"):
        ran([meet(BOTH, 0, 30), meet(BOTH, 0, 30, stream=8)], [])


def test_a_collective_by_a_compute_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="one communication kernel"):
        ran([compute(10)._replace(collective=Collective((0,), "EP", 0, 30))])
