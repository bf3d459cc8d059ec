"""A trace beside its configuration and log: what each adds to the diagnosis."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from bench.simulate.export import write_export
from tests.configurations.check import SCRIPT, written
from tests.doubles.document import DISPATCH, exposed
from tests.doubles.pages import whole_text
from tests.recordings.launches import GROUPED

GIVEN = {"gpu": "H100", "core_version": "0.16.1"}


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("seq_length", "shown"), [(64, True), (128, False)])
def test_grouped_products_are_as_fast_as_the_configuration_says_unless_no_gpu_is(
    tmp_path: Path, seq_length: int, shown: bool
) -> None:
    """1 ms a step; of a token 3 x 8 matrices of 2048 by 768 in each of 48 layers, three passes."""
    text = SCRIPT.replace("--seq-length 4096", f"--seq-length {seq_length}").replace("-size 256", "-size 32")
    path = tmp_path / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH, kernel=GROUPED))
    config = written(tmp_path, "small.sh", text)
    result = diagnoser.analyze(path, config=config, about=GIVEN, ask_megatron=False)
    document = result.to_dict()
    flop = 3 * seq_length * 48 * 2 * 3 * 8 * 2048 * 768
    assert flop / 1e9 == pytest.approx(696 if shown else 1392, rel=0.01)  # TFLOP/s, of 990 that an H100 has
    if not shown:
        assert "grouped_gemm" not in document["throughput"]
        return
    found = document["throughput"]["grouped_gemm"]
    assert (found["flop"], found["work_ns"]) == (flop, 1_000_000)
    assert found["tflops_per_s"] == pytest.approx(flop / 1e9)
    assert found["peak_frac"] == pytest.approx(flop / 1e9 / 989.5)
    said = "Grouped GEMMs run at 696 TFLOP/s, 1.00 ms of a step and 70 % of the peak, by the configuration"
    assert said in words(whole_text(document))
