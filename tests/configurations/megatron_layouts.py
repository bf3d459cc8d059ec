"""Layouts with what megatron-core says of each, and the question to it."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.config.about import Given
from heuristics.rules.megatron.request import Request, request_of
from heuristics.run.run import Run
from traces.settings.settings import Value, settings

FULL_NAMES = {
    "tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size",
    "vpp": "virtual_pipeline_model_parallel_size", "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size", "etp": "expert_tensor_parallel_size",
    "dispatcher": "moe_token_dispatcher_type", "backend": "moe_flex_dispatcher_backend",
    "world": "world_size",
}  # fmt: skip
KNOWN = {"num_moe_experts": 64, "moe_router_topk": 8}


def run_for(
    knobs: Mapping[str, Value], flex_package: bool | None = None, core_version: str | None = None
) -> Run:
    values = {**KNOWN, **{FULL_NAMES.get(name, name): value for name, value in knobs.items()}}
    given = Given(te_version="2.9.0", flex_package=flex_package, core_version=core_version)
    return Run(given=given, settings=settings(values, "test"))


def request_for(
    knobs: Mapping[str, Value], flex_package: bool | None = None, core_version: str | None = None
) -> Request:
    request = request_of(run_for(knobs, flex_package, core_version))
    assert isinstance(request, Request)
    return request


FITS: dict[str, dict[str, Value]] = {
    "8 ranks EP8": {"world": 8, "ep": 8},
    "256 ranks TP2 PP4 EP8": {"world": 256, "tp": 2, "pp": 4, "ep": 8, "etp": 1},
    "1,024 ranks TP4 PP8 EP32": {"world": 1024, "tp": 4, "pp": 8, "ep": 32, "etp": 1},
    "top-k above the experts": {"world": 8, "ep": 8, "moe_router_topk": 100},
    "61 layers by a layout": {"world": 256, "pp": 8, "vpp": 4, "ep": 32, "num_layers": 61,
     "mtp_num_layers": 1, "pipeline_model_parallel_layout": "Et*3|(tt|)*29m|L"},
    "low precision and latent experts": {"world": 8, "ep": 8, "fp8": "e4m3", "moe_latent_size": 64},
    "shared experts overlapped": {"world": 8, "ep": 8, "moe_shared_expert_intermediate_size": 256,
     "moe_shared_expert_overlap": True},
    "a dense model": {"world": 8, "tp": 2, "pp": 2, "cp": 2, "num_moe_experts": None},
}  # fmt: skip
