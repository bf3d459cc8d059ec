"""The SMs of a hand-made run: what is missing of a GPU, and samples of counters with holes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.by_hand.run import US, Run
from traces.columns import Gpu, GpuSamples
from traces.intervals import spans
from traces.measure.sm import measure_samples, measure_sm
from traces.missing import Missing, known

GPU = Gpu(0, 0, None, 132, "9.0", None)


@pytest.mark.parametrize(("gpu", "said"), [
    (None, "which GPU this is"), (replace(GPU, sm_count=None), "the number of SMs of the GPU"),
    (replace(GPU, capability=None), "the GPU's compute capability"),
    (replace(GPU, capability="42.0"), "what an SM of compute capability 42.0 holds is not known here"),
])  # fmt: skip
def test_launches_are_not_judged_without_the_limits_of_the_gpu(gpu: Gpu | None, said: str) -> None:
    run = Run()
    run.work("nvjet_sm90_tst_256x160_64x4_2x1_h_bz_coopA_TNT", 0, 10)
    sm = measure_sm(run.rank(), spans((0, 10 * US)), gpu).sm
    assert isinstance(sm.fill_frac, Missing)
    assert sm.fill_frac.reason.endswith(said)
    assert (sm.tail_ns, sm.by_class) == (sm.fill_frac, {})
    assert (known(sm.sm_count) == 132) is bool(gpu and gpu.sm_count)
    assert sm.capability_at_least == (None if gpu and gpu.capability else "9.0")
    assert isinstance(sm.measured, Missing)
    assert "moe-diag capture --for metrics" in sm.measured.cure


def test_samples_count_for_as_long_as_a_kernel_ran_in_them_where_they_have_the_metric() -> None:
    """A GEMM in the first ten us, a norm from 15 to 20, an all-reduce from 19.999 to 25; samples of 10 us."""
    run = Run()
    for name, start, end in (("gemm", 0, 10), ("norm", 15, 20), ("all_reduce", 19.999, 25)):
        run.work(name, start, end, stream=20 if name == "all_reduce" else 7)
    rows, start_ns, nan = run.rank().activities, np.arange(4) * 10 * US, float("nan")
    active, issue = np.array([nan, 0.4, 0.6, 0.9]), np.array([0.2, 0.8, 0.5, 0.9])
    mine = GpuSamples(0, start_ns, start_ns + 10 * US, active, issue, np.array([nan] * 3 + [0.5]))
    samples = (replace(mine, gpu_id=1, sm_issue_frac=active), mine)
    found = measure_samples(rows, spans((0, 40 * US)), GPU, samples, "nsys")
    assert not isinstance(found, Missing)
    assert [found.sm_active_frac, found.sm_issue_frac, found.pure_frac] == pytest.approx([0.5, 0.425, 2 / 3])
    assert found.samples == 3
    assert isinstance(found.tensor_active_frac, Missing)
    for gpu, window, said in ((None, (0, 40), "of this GPU"), (GPU, (10, 15), "while a kernel ran")):
        none = measure_samples(rows, spans((window[0] * US, window[1] * US)), gpu, samples, "nsys")
        assert isinstance(none, Missing)
        assert said in none.reason
