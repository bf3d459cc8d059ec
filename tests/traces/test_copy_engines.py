"""Collectives by NCCL's copy engines are communication; copies that are none stay copies."""

from __future__ import annotations

import pytest

from bench.simulate.recording import Recording
from tests.places import Export
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.intervals import spans
from traces.measure.budget import measure_budget


def budget(
    export: Export, name: str, copies: int, *, grouped: bool = False, kind: str = "d2d"
) -> tuple[int, int]:
    """Exposed communication and copies of 10 us, between kernels, launched together under a range."""
    recording = Recording()
    recording.gpu()
    recording.kernel("gemm", 0, 10_000, grid=(132, 1, 1), launch_ns=0)
    if grouped:
        recording.range("ncclGroupStart", 11_000, 11_100, domain=1, registered=True)
        recording.range(name, 11_200, 11_300, domain=1, registered=True)
        name = "ncclGroupEnd"
    recording.range(name, 12_000, 14_000, domain=1, registered=True)
    for place in range(copies):
        start_ns = 20_000 + place * 10_000
        recording.copy(kind, start_ns, start_ns + 10_000, size_bytes=8, launch_ns=12_500 + place, stream=20)
    recording.kernel("gemm", 90_000, 100_000, grid=(132, 1, 1), launch_ns=80_000)
    rank = build(read_trace(export(recording))).ranks[0]
    found = measure_budget(rank.activities, spans((0, 100_000)))
    return sum(found.exposed_comm_by_kind_ns.values()), found.exposed_copy_ns


@pytest.mark.parametrize("name", ["ncclAllGather", "ncclAlltoAll"])
@pytest.mark.parametrize("grouped", [False, True])
def test_several_copies_of_one_call_are_communication(export: Export, name: str, grouped: bool) -> None:
    assert budget(export, name, 3, grouped=grouped) == (30_000, 0)


@pytest.mark.parametrize(
    ("name", "copies", "kind"),
    [
        ("ncclAllGather", 1, "d2d"),  # a communicator of one rank
        ("ncclAllReduce", 3, "d2d"),  # which copy engines cannot do
        ("forward", 3, "d2d"),
        ("ncclAllGather", 3, "d2h"),
    ],
)
def test_other_copies_stay_copies(export: Export, name: str, copies: int, kind: str) -> None:
    assert budget(export, name, copies, kind=kind) == (0, copies * 10_000)
