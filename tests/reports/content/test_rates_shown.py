"""Rates as people read them: what the trace shows beside what the configuration and the log say."""

from __future__ import annotations

from pathlib import Path

import diagnoser
from heuristics.result.configured import Throughput
from reports.content.analysis.rates import rates
from reports.content.blocks import Sentence, words
from tests.recordings.kineto import late_host, write
from traces.missing import Missing
from traces.sizes.peaks import Peak

H100 = Peak("H100", "bf16", 989.0, "NVIDIA")


def of_log(peak: Peak | Missing, mfu_frac: float | Missing) -> Throughput:
    return Throughput(
        1_000_000, 1_000.0, 405.5, mfu_frac, peak, "configuration and the log's steady step", ()
    )


def test_the_mfu_of_the_log_stands_beside_the_hfu_of_the_trace(tmp_path: Path) -> None:
    rank = diagnoser.analyze(write(tmp_path / "run.json", late_host())).result.ranks[0]
    (alone,), (both,) = rates(rank, None), rates(rank, of_log(H100, 0.41))
    said = "MFU: 41 % of 989 TFLOP/s (H100, bf16), by configuration and the log's steady step; "
    assert both.blocks == (*alone.blocks, Sentence(words(f"{said}HFU counts recomputed work as well.")))
