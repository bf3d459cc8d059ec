"""What the PyTorch profiler says of process groups settles what their kernels are for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.recordings.kineto import SENDRECV, Profiled, write
from tests.recordings.launches import (
    ATTENTION,
    GATHER,
    GEMM,
    GROUPED,
    NORM,
    PERMUTE,
    ROUTER,
    SCATTER,
    SORT,
    UNPERMUTE,
    kinds,
    rank_of,
    told,
)
from traces.resolve.kinds import resolve_kinds
from traces.timeline import RankTimeline

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def exchanged(*several: tuple[Any, ...], before: tuple[str, ...] = (GEMM,)) -> Profiled:
    """One collective after the other, as `Profiled.collective` takes them, and a GEMM behind each."""
    run = Profiled()
    run.run(*before)
    for one in several:
        run.collective(*one)
        run.run(GEMM)
    return run


def rank(tmp_path: Path, run: Profiled, **header: Any) -> RankTimeline:
    return rank_of(write(tmp_path / "run.json", run.events, **header))


@pytest.mark.parametrize(
    ("collective", "description", "kind", "operation"),
    [
        ("all_to_allv", "EXPERT_MODEL_PARALLEL_GROUP", "ep_a2a", "a2a"),
        ("all_to_all", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "ep_a2a", "a2a"),
        ("send", "PIPELINE_MODEL_PARALLEL_GROUP", "pp_p2p", "p2p"), ("recv", "mesh_pp", "pp_p2p", "p2p"),
        ("all_to_all", "CONTEXT_PARALLEL_GROUP", "cp", "a2a"),
        ("all_to_all", "TENSOR_MODEL_PARALLEL_GROUP", "tp", "a2a"),
    ],
)  # fmt: skip
def test_a_described_group_settles_what_its_exchange_is_for(
    tmp_path: Path, collective: str, description: str, kind: str, operation: str
) -> None:
    run = exchanged((SENDRECV, collective, description))
    ((found, what, _, evidence, sure),) = told(rank(tmp_path, run))
    assert (found, what, evidence, sure) == (kind, operation, "process_group", "high")


def test_a_description_in_the_header_alone_serves_too(tmp_path: Path) -> None:
    run = exchanged((SENDRECV, "all_to_allv", None, "12"))
    groups = [{"pg_name": "12", "pg_desc": "EXPERT_MODEL_PARALLEL_GROUP"}, "?", {"pg_name": 3}]
    assert kinds(rank(tmp_path, run, distributedInfo={"pg_config": groups})) == ["ep_a2a"]
    assert kinds(rank(tmp_path, run, distributedInfo={"pg_config": 7})) == ["sendrecv_unresolved"]


def test_neighbours_give_the_direction_of_a_described_group(tmp_path: Path) -> None:
    run = Profiled()
    run.run(NORM, ROUTER, PERMUTE)
    run.collective(SENDRECV, "all_to_allv", "EXPERT_MODEL_PARALLEL_GROUP")
    run.run(SORT, GROUPED, SORT)
    run.collective(SENDRECV, "all_to_allv", "EXPERT_MODEL_PARALLEL_GROUP")
    run.run(UNPERMUTE, NORM)
    assert told(rank(tmp_path, run)) == [
        ("ep_dispatch", "dispatch", "fwd", "process_group", "high"),
        ("ep_combine", "combine", "fwd", "process_group", "high"),
    ]


def test_the_name_of_a_collective_alone_settles_the_operation_only(tmp_path: Path) -> None:
    run = exchanged((SENDRECV, "all_to_allv"))
    found = resolve_kinds(rank(tmp_path, run))
    assert told(rank(tmp_path, run), found) == [("sendrecv_unresolved", "a2a", None, "name", "low")]
    assert "process group" in found.unresolved[0].reason
    assert "group_desc" in found.unresolved[0].cure


def test_a_named_all_to_all_is_expert_traffic_where_experts_run_and_not_beside_attention(
    tmp_path: Path,
) -> None:
    run = Profiled()
    run.run(GEMM)
    run.collective(SENDRECV, "all_to_allv")
    run.run(GEMM, ROUTER, ATTENTION)
    run.collective(SENDRECV, "all_to_all", group="5", stream=24)
    run.run(ATTENTION)
    rows = told(rank(tmp_path, run))
    assert [(row[0], row[3], row[4]) for row in rows] == [
        ("ep_a2a", "process_group", "medium"),
        ("cp", "process_group", "medium"),
    ]


def test_a_named_send_is_never_taken_for_an_all_to_all_of_its_group(tmp_path: Path) -> None:
    several = [(SENDRECV, name, "default_pg", "0") for name in ("all_to_all", "send")]
    run = exchanged(*several, before=(ROUTER, GEMM))
    assert [row[:2] for row in told(rank(tmp_path, run))] == [("ep_a2a", "a2a"), ("pp_p2p", "p2p")]


def test_an_all_to_all_in_a_group_of_data_parallelism_is_not_settled_by_its_shape(tmp_path: Path) -> None:
    run = exchanged((SENDRECV, "all_to_allv", "DATA_PARALLEL_GROUP"), before=(ROUTER, GEMM))
    assert kinds(rank(tmp_path, run)) == ["sendrecv_unresolved"]


def test_described_groups_settle_gathers_and_scatters_and_reductions_of_tensor_parallelism(
    tmp_path: Path,
) -> None:
    several = [
        (GATHER, "DATA_PARALLEL_GROUP_WITH_CP", "dp_all_gather"),
        (SCATTER, "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", "dp_reduce_scatter"),
        (GATHER, "EXPERT_DATA_PARALLEL_GROUP", "dp_all_gather"),
        *((GATHER, "TENSOR_MODEL_PARALLEL_GROUP", "tp"), (REDUCE, "TENSOR_MODEL_PARALLEL_GROUP", "tp")),
        *((REDUCE, "DATA_PARALLEL_GROUP", "all_reduce"), (GATHER, "CONTEXT_PARALLEL_GROUP", "cp")),
        (GATHER, "mesh_dp_shard", "dp_all_gather"),
        (GATHER, "PIPELINE_MODEL_PARALLEL_GROUP", "other_comm"),
        (GATHER, "MODEL_PARALLEL_GROUP", "other_comm"),
    ]
    run = exchanged(*((name, "collective", described, described) for name, described, _ in several))
    assert kinds(rank(tmp_path, run)) == [kind for *_, kind in several]


def test_odd_arguments_say_nothing(tmp_path: Path) -> None:
    several = [(SENDRECV, odd, odd, odd) for odd in (7, ["all_to_all"], {"a": 1}, "", None)]
    found = rank(tmp_path, exchanged(*several))
    assert found.columns.collectives is None
    assert kinds(found) == ["sendrecv_unresolved"] * 5


@pytest.mark.parametrize("stranger", ["MY_EXPERT_MODEL_PARALLEL_GROUP", "mesh_ep2", "ep", "GROUP"])
def test_only_whole_known_descriptions_count(tmp_path: Path, stranger: str) -> None:
    assert kinds(rank(tmp_path, exchanged((SENDRECV, "all_to_allv", stranger)))) == ["sendrecv_unresolved"]
