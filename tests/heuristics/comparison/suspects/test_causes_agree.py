"""No suspect contradicts its own rows, over drawn pairs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.comparison.comparison import compare
from tests.agreement.causes import contradictions
from tests.doubles.comparison import kernel, rank, result, row
from traces.sections.rank import Rank

NAMES = (
    "compute.gemm", "compute.attention", "compute.norm", "compute.optimizer", "compute.elementwise",
    "compute.quantize", "compute.graph_replay", "exposed_comm.ep_dispatch", "exposed_comm.dp_reduce_scatter",
    "exposed_copy.memcpy_h2d", "idle.launch_starved.data", "idle.launch_starved.python",
    "idle.launch_latency.kernel_gap", "idle.trailing",
)  # fmt: skip
MS = 1_000_000
rows_of_a_side = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.integers(1, 40), st.sampled_from((1, 6, 12, 100, 150))), min_size=1
)


@st.composite
def sides(draw: st.DrawFn) -> Rank:
    """A rank of two alike steps: rows of so many ms and activities, kernels of two names by class."""
    rows, kernels = [], []
    for name, (ms, count) in sorted(draw(rows_of_a_side).items()):
        rows.append(row(name, ms * MS, ms * MS, count=2 * count, work_ns=2 * ms * MS))
        if name.startswith("compute."):
            called = draw(st.sampled_from(("one_fwd", "other_bwd")))
            kernels.append(kernel(called, 2 * ms * MS, count=2 * count, key=name))
    loading: dict[str, Any] = {"waiting_steps": 1, "workers": draw(st.sampled_from((None, 1, 4))),
        "input_copies": 4, "input_copies_pageable": draw(st.sampled_from((None, 0, 4))),
        "input_copies_exposed_ns": 0}  # fmt: skip
    found = draw(st.sampled_from(("bf16", "fp32", "tf32", "fp8")))
    detected = {"graph_share_frac": draw(st.sampled_from((0.0, 0.6))), "precision": found,
        "precision_shares_frac": {found: 1.0}}  # fmt: skip
    memory = {"recompute_ns": draw(st.sampled_from((0, 9 * MS))), "recompute_modules": {}}
    return rank(*rows, kernels=tuple(kernels), data_loading=loading, detected=detected, memory=memory)


@settings(max_examples=60)
@given(sides(), sides())
def test_no_suspect_of_drawn_sides_contradicts_its_rows(one: Rank, other: Rank) -> None:
    base, new = result(one), result(other)
    assert [*contradictions(compare(base, new))] == []
