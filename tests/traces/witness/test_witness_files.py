"""Files of a second witness: read as plain values, whatever they ask for; what is none is refused by name."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.errors import NotAWitness, TraceNotFound
from traces.files.plain_pickle import NotPlain, read_plain
from traces.sections.hang import WitnessSource
from traces.witness.flight_recorder import dump_of
from traces.witness.read import read_witness, read_witnesses
from traces.witness.times import witness_of

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=9)
)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(value=PLAIN, protocol=st.sampled_from([2, 3, 4, 5]))
def test_plain_values_are_read_as_python_reads_them(value: object, protocol: int) -> None:
    assert read_plain(pickle.dumps(value, protocol)) == value


class _Calls:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused_and_nothing_runs(tmp_path: Path, protocol: int) -> None:
    hostile = tmp_path / "trace_rank_0"
    hostile.write_bytes(pickle.dumps({"entries": [_Calls(tmp_path / "made")]}, protocol))
    with pytest.raises(NotAWitness, match="asks for more than plain values"):
        read_witness(hostile)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", 1j, range(3), NotPlain])
def test_objects_of_any_kind_are_refused(value: object) -> None:
    with pytest.raises(NotPlain):
        read_plain(pickle.dumps(value))


SAME_HASH = 2**61 - 1
"""Python gives whole numbers that differ by this one hash."""


def _levels(count: int) -> list[object]:
    """A list that holds the list of the level below twice."""
    made: list[object] = ["x"]
    for _ in range(count):
        made = [made, made]
    return made


def _itself() -> list[object]:
    made: list[object] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({key * SAME_HASH: 1 for key in range(9)}, "no number of 64 bits"),
        ([_levels(40)], "again and again"),
        (["a" * 5_000] * 5_000, "again and again"),
        (_itself(), "holds itself"),
    ],
    ids=["keys of one hash", "lists that double", "a long text many times", "a list that holds itself"],
)
def test_a_pickle_that_costs_more_than_its_length_is_refused(value: object, said: str) -> None:
    with pytest.raises(NotPlain, match=said):
        read_plain(pickle.dumps(value, 2))


def test_stacks_that_many_entries_share_are_read() -> None:
    frames = [{"filename": f"/torch/m{line}.py", "line": line, "name": "forward"} for line in range(200)]
    entries = [{"action": "alloc", "addr": 512 * place, "frames": frames} for place in range(300)]
    assert read_plain(pickle.dumps({"device_traces": [entries]}, 4)) == {"device_traces": [entries]}


@given(data=st.binary(max_size=60))
def test_any_bytes_end_in_a_value_or_in_a_refusal(data: bytes) -> None:
    with suppress(NotPlain, OverflowError):
        read_plain(b"\x80\x02" + data)


@pytest.mark.parametrize(("name", "data", "why"), [
    ("trace_rank_0", b"\x80\x02}.", "no entries"), ("trace_rank_0", b"\x80\x02]", "cut off"),
    ("trace", b'{"entries": []}', "does not end with its rank"),
    ("trace_rank_0.json", b'{"a": 1}', "names a communicator"),
    ("trace_rank_0.json", b"\xff\xfe", "no whole dump"), ("trace_rank_0.json", b"", "names a communicator"),
])  # fmt: skip
def test_what_is_no_dump_is_refused_by_name(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(NotAWitness, match=why) as refused:
        read_witness(path)
    assert name in str(refused.value)
    assert "Give dumps of PyTorch's Flight Recorder" in str(refused.value)


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound, match="is a folder"):
        read_witness(tmp_path)
    with pytest.raises(TraceNotFound, match="cannot be read"):
        read_witness(tmp_path / "gone")


def test_files_that_cannot_be_used_are_told_beside_those_that_can(tmp_path: Path) -> None:
    good, bad = tmp_path / "trace_rank_3.json", tmp_path / "trace_rank_4.json"
    good.write_text('{"entries": []}')
    bad.write_text("[]")
    dumps, failed = read_witnesses([bad, good])
    assert [one.rank for one in dumps] == [3]
    assert list(failed) == [bad]


def inspector(rank: int, *times_us: int, version: str = "v4.2") -> str:
    """A communicator of all four ranks, and one of two, in which each has another number."""
    metadata = {"inspector_output_format_version": version, "hostname": "host", "pid": 100 + rank}
    everybody = {"id": "0xaa", "comm_name": "unknown", "rank": rank, "n_ranks": 4, "nnodes": 1}
    pair = {
        "id": f"0xb{rank // 2}",
        "comm_name": "EXPERT_MODEL_PARALLEL_GROUP",
        "rank": rank % 2,
        "n_ranks": 2,
    }
    lines = [{"header": pair, "metadata": metadata, "coll_perf": {"coll": "AllGather", "coll_sn": 0}}]
    for number, took in enumerate(times_us):
        one = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 64, "coll_exec_time_us": took}
        lines.append({"header": everybody, "metadata": metadata, "coll_perf": one})
    return "\n".join(map(json.dumps, lines)) + "\n"


def test_inspector_gives_sequence_numbers_and_times_and_the_rank_of_the_largest_communicator(
    tmp_path: Path,
) -> None:
    path = tmp_path / "host-pid103.log"
    path.write_text(inspector(3, 500, 700, 0))
    (dump,) = read_witness(path)
    assert (dump.rank, dump.source) == (3, WitnessSource.INSPECTOR)
    assert [(one.sequence, one.operation, one.duration_ns) for one in dump.entered] == [
        *((0, "ALLGATHER", None), (0, "ALLREDUCE", 500_000), (1, "ALLREDUCE", 700_000)),
        (2, "ALLREDUCE", None),
    ]


def test_from_version_4_3_on_the_lines_of_a_dump_share_one_header(tmp_path: Path) -> None:
    header = {"id": "0xaa", "rank": 1, "n_ranks": 2}
    first = {"header": header, "metadata": {"hostname": "h", "pid": 7}, "dump_stats": {"coll_records": 1}}
    record = {"coll_perf": {"coll": "AllReduce", "coll_sn": 9, "coll_exec_time_us": 5}}
    path = tmp_path / "inspector.log"
    path.write_text(f"{json.dumps(first)}\n{json.dumps(record)}\n{{cut")
    (dump,) = read_witness(path)
    assert (dump.rank, dump.entered[0].sequence) == (1, 9)


def test_the_shortest_of_a_collective_arrived_last_and_the_rest_is_waiting_for_it(tmp_path: Path) -> None:
    """Of 1000, 1000, 400 and 1000 us three ranks wait 600 us for rank 2; then all are alike."""
    for rank, took in enumerate((1000, 1000, 400, 1000)):
        (tmp_path / f"{rank}.log").write_text(inspector(rank, took, 300))
    dumps, _ = read_witnesses(sorted(tmp_path.iterdir()))
    witness = witness_of(dumps, 4, {0, 1})
    assert (witness.compared, witness.latest_rank, witness.caused_frac) == (2, 2, 1.0)
    assert [one.caused_ns for one in witness.ranks] == [0, 0, 1_800_000, 0]
    assert [one.waited_ns for one in witness.ranks] == [600_000, 600_000, 0, 600_000]
    assert [one.profiled for one in witness.ranks] == [True, True, False, False]
    two = witness_of(dumps[1:3], 2, set())  # of the second none arrived last, so the lowest is named
    assert (two.compared, two.latest_rank, two.latest_frac, two.caused_frac) == (2, 2, 0.5, 1.0)
    assert [one.last_sequence for one in two.ranks] == [1, 1]


def test_a_dump_of_nccl_has_members_times_and_sizes(tmp_path: Path) -> None:
    """By format: PyTorch's own documents (docs/source/distributed.md, fr_trace's tests)."""
    entry = {
        "pg_id": 1, "process_group": ["2", "EXPERT_MODEL_PARALLEL_GROUP"], "collective_seq_id": 812,
        "profiling_name": "nccl:all_reduce", "state": "started", "retired": False, "is_p2p": False,
        "time_created_ns": 5_000, "duration_ms": None, "input_sizes": [[2, 3], [4]],
        "input_dtypes": ["BFloat16", "BFloat16"], "time_discovered_started_ns": 6_000,
        "time_discovered_completed_ns": 9_000,
    }  # fmt: skip
    document = {
        "version": "2.10",
        "pg_config": {"2": {"name": "2", "desc": "EXPERT_MODEL_PARALLEL_GROUP", "ranks": "[4, 5]"}},
        "pg_status": {"1": {"last_enqueued_collective": "813"}},
        "entries": [entry, {**entry, "is_p2p": True}, {**entry, "collective_seq_id": "x"}],
    }
    path = tmp_path / "nccl_trace_rank_5"
    path.write_text(json.dumps(document))
    (dump,) = read_witness(path)
    (one,) = dump.entered
    assert (dump.rank, one.group, one.sequence, one.finished) == (5, ("2", (4, 5)), 812, False)
    assert (one.elements, one.duration_ns) == ("10 BFloat16", 3_000)
    assert dump.groups[one.group].last_entered == 813
    for more, said in (
        ({"time_discovered_completed_ns": 5_000}, ("10 BFloat16", None)),
        ({"duration_ms": 0}, ("10 BFloat16", 3_000)),
        ({"duration_ms": 2.5}, ("10 BFloat16", 2_500_000)),
        ({"input_dtypes": ["Float", "Half"]}, ("10 elements", 3_000)),
    ):
        several = [{**entry, **more}, {**entry, "input_sizes": [[1]]}]  # of two of one number the first
        (one,) = dump_of({**document, "entries": several}, "trace_5").entered
        assert (one.elements, one.duration_ns) == said
