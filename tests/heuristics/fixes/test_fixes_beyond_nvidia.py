"""The cards that come after NVIDIA's list: what each needs, and that none is tried without its evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.parallel import connections
from heuristics.run.run import Run
from tests.doubles.fixes import complete, configured, states
from traces.settings.settings import Value

OVERLAPPED = Observed(ep_overlap=True, dispatcher="deepep", internode=True, a2a_waiting_frac=0.1)


OVERLAP: dict[str, Value] = {"overlap_moe_expert_parallel_comm": True}


@pytest.mark.parametrize("module", ["attn", "moe_router"])
def test_delayed_gradients_want_a_newer_transformer_engine_inside_graphs(module: str) -> None:
    values: dict[str, Value] = {
        **OVERLAP,
        "ddp.overlap_grad_reduce": True,
        "cuda_graph_impl": "transformer_engine",
        "cuda_graph_modules": (module,),
    }
    older, newer = (complete(values, te_version=version) for version in ("2.11.0", "2.12.0"))
    text = "Engine 2.12"
    as_lm = [replace(one, settings=replace(one.settings, framework="megatron_lm")) for one in (older, newer)]
    assert states(CATALOGUE["COM-9"], text, *as_lm) == ["unmet", "met"]


@pytest.mark.parametrize(
    ("run", "queues"),
    [
        (Run(given=Given(gpu="GB200", tp=2)), 32),
        (Run(given=Given(gpu="H100", tp=2)), 1),
        (Run(given=Given(gpu="H100", cp=2)), 1),
        (Run(OVERLAPPED, Given(gpu="H100", tp=2)), 32),
        (Run(Observed(ep_overlap=True), Given(gpu="H100", tp=2)), 8),
        (Run(given=Given(gpu="H100", tp=1, cp=1)), 8),
        (configured({"ddp.use_megatron_fsdp": True}, gpu="H100", tp=2), 8),
    ],
)
def test_queues_are_what_the_runs_overlaps_want(run: Run, queues: int) -> None:
    assert connections(run) == queues
    assert CATALOGUE["COM-13"].knobs(run).environment == (f"CUDA_DEVICE_MAX_CONNECTIONS={queues}",)


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ({"context_parallel_size": 16}, ("--cp-comm-type p2p",)),
        ({"context_parallel_size": 16, "cp_comm_type": "a2a"}, ()),  # the last kind to try
        (
            {"context_parallel_size": 16, "cp_comm_type": "p2p", "num_attention_heads": 8},
            ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 8 2"),
        ),
        (
            {"context_parallel_size": 4, "cp_comm_type": "p2p", "num_attention_heads": 8},
            ("--cp-comm-type a2a",),
        ),
        (
            {"context_parallel_size": 8, "cp_comm_type": "p2p", "num_query_groups": 4},
            ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 4 2"),
        ),
    ],
)
def test_a_ring_that_runs_is_cut_in_two_levels_that_heads_and_domain_hold(
    values: dict[str, Value], flags: tuple[str, ...]
) -> None:
    assert CATALOGUE["COM-7"].knobs(configured(values, gpu="H100")).megatron_lm == flags
