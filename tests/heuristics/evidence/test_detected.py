"""What kind of run a rank shows, from rows that one can count by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import diagnoser
from bench.simulate.recording import Recording
from traces.missing import Missing
from traces.sections.rank import Detected

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"


def detected(path: Path) -> Detected:
    return diagnoser.analyze(path).result.ranks[0].detected


def test_a_graph_of_three_kernels_and_one_alone_are_two_kernels_per_launch(
    export: Callable[[Recording], Path],
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 100, 200, launch_ns=10)
    graph = recording.kernel(GEMM, 200, 300, launch_ns=50, api="cudaGraphLaunch_v10000", graph_node_id=1)
    for node, start in ((2, 300), (3, 400)):
        recording.kernel(GEMM, start, start + 100, correlation_id=graph, graph_node_id=node)
    assert detected(export(recording)).kernels_per_launch == 2


def test_without_recorded_launches_kernels_per_launch_is_missing(
    export: Callable[[Recording], Path],
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 100, 200)
    assert isinstance(detected(export(recording)).kernels_per_launch, Missing)
