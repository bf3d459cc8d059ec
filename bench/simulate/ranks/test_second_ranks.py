from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given

from bench.second.drawn import joint_programs
from bench.second.simulator import SecondRanks
from bench.second.simulator_parts import instance_of
from bench.second.times import Times, by_the_engine, by_the_second
from bench.simulate.engine import execute, execute_ranks
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


def compute(alone_ns: int, stream: int = 7, blocks: int = 50) -> Launch:
    """A call of 10 ns; its work arrives 5 ns later."""
    return Launch("launch", (Work("some", Engine.SMS, stream, alone_ns, PLACE, blocks, arrival_ns=5),), 10)


def together(transfer_ns: int, *group: int, sequence: int = 0, name: str = "ep") -> Launch:
    """The same for a collective of 20 blocks, on a stream of its own."""
    work = Work("all", Engine.COMMUNICATION, 9, 1_000, PLACE, 20, 1_000, arrival_ns=5)
    return Launch("launch", (work,), 10, collective=Collective(group, name, sequence, transfer_ns))


def run(programs: Mapping[int, Sequence[Operation]], queue: int = 1022) -> SecondRanks:
    machine = Machine(100, queue, beside_comm_frac=0.25)
    return SecondRanks({rank: Program(machine, {MAIN: said}) for rank, said in programs.items()})


def times(ran: SecondRanks, rank: int) -> list[tuple[int | None, int | None]]:
    return [(piece.start_ns, piece.end_ns) for piece in ran.ranks[rank].pieces]


def test_a_collective_moves_when_its_last_rank_is_there_and_each_ends_by_its_own_transfer() -> None:
    ran = run({0: [together(30, 0, 1)], 1: [Busy(100), together(40, 0, 1)]})
    assert (times(ran, 0), times(ran, 1)) == ([(15, 145)], [(115, 155)])
    assert ran.arrivals_ns == {((0, 1), "ep", 0): {0: 15, 1: 115}}


def test_groups_of_other_ranks_names_or_numbers_wait_for_none_of_each_other() -> None:
    ran = run(
        {
            0: [together(1, 0, 1), together(2, 0, 1, sequence=1), together(3, 0, 2, name="dp")],
            1: [together(1, 0, 1), together(2, 0, 1, sequence=1)],
            2: [Busy(500), together(3, 0, 2, name="dp")],
        }
    )
    assert times(ran, 0) == [(15, 16), (25, 27), (35, 518)]
    assert (times(ran, 1), times(ran, 2)) == ([(15, 16), (25, 27)], [(515, 518)])


def test_a_rank_that_waits_for_another_holds_its_sms_and_slows_what_runs_beside() -> None:
    ran = run({0: [together(30, 0, 1), compute(160, blocks=100)], 1: [Busy(100), together(30, 0, 1)]})
    # from 25 to 145 80 of 100 SMs, less a quarter more: 76.8 of 160 are done; the rest alone
    assert times(ran, 0) == [(15, 145), (25, 229)]


def test_who_is_late_at_one_group_makes_the_next_group_wait() -> None:
    ran = run(
        {
            0: [Busy(1_000), together(10, 0, 1)],
            1: [together(10, 0, 1), together(10, 1, 2)],
            2: [together(10, 1, 2)],
        }
    )
    assert times(ran, 1) == [(15, 1_025), (1_025, 1_035)]
    assert times(ran, 2) == [(15, 1_035)]


def test_a_host_whose_queue_is_full_waits_for_a_late_peer() -> None:
    late: list[Operation] = [Busy(1_000), together(10, 0, 1)]
    ran = run({0: [together(10, 0, 1), compute(50)], 1: late}, queue=1)
    assert [call.end_ns for call in ran.ranks[0].calls[MAIN]] == [10, 1_025]


def test_a_host_that_synchronises_waits_for_a_late_peer() -> None:
    late: list[Operation] = [Busy(1_000), together(10, 0, 1)]
    ran = run({0: [together(10, 0, 1), Synchronise("device", 0, 5, 3)], 1: late})
    assert ran.ranks[0].calls[MAIN][-1].end_ns == 1_028


@pytest.mark.parametrize("wrong", [[Busy(5)], [together(10, 0, 1, sequence=1)]])
def test_a_rank_that_never_arrives_is_refused(wrong: list[Operation]) -> None:
    with pytest.raises(ValueError, match="never comes"):
        run({0: [together(10, 0, 1)], 1: wrong})


def test_a_rank_of_another_group_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2 cannot arrive"):
        run({2: [together(10, 0, 1)]})


def test_a_rank_that_arrives_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 0 cannot arrive"):
        run({0: [together(10, 0), together(10, 0)]})


def alone(ran: SecondRanks, rank: int, said: Program) -> Program:
    """The program of one rank with what it waited for its peers written into it, so that it needs none."""

    def without_peers(operation: Operation) -> Operation:
        if not isinstance(operation, Launch) or operation.collective is None:
            return operation
        arrivals_ns = ran.arrivals_ns[instance_of(operation.collective)]
        work = operation.works[0]._replace(
            peer_ns=max(arrivals_ns.values()) - arrivals_ns[rank], alone_ns=operation.collective.transfer_ns
        )
        return operation._replace(works=(work,), collective=None)

    threads = {thread: [*map(without_peers, operations)] for thread, operations in said.threads.items()}
    return Program(said.machine, threads)


def only_times(times: Times) -> dict[str, list[tuple[int, int, list[tuple[int | None, int | None]]]]]:
    return {thread: [call[1:] for call in calls] for thread, calls in times.items()}


@given(joint_programs())
def test_a_rank_runs_alone_as_it_does_with_others_once_it_is_said_how_long_it_waits_for_them(
    programs: dict[int, Program],
) -> None:
    ran = SecondRanks(programs)
    for rank, said in programs.items():
        together_times = only_times(by_the_second(ran.ranks[rank]))
        assert only_times(by_the_engine(execute(alone(ran, rank, said)))) == together_times


@given(joint_programs())
def test_both_simulators_agree_on_every_call_and_all_gpu_work_of_every_rank(
    programs: dict[int, Program],
) -> None:
    ran = SecondRanks(programs)
    first = execute_ranks([programs[rank] for rank in sorted(programs)])
    assert [by_the_second(ran.ranks[rank]) for rank in sorted(programs)] == [*map(by_the_engine, first)]
