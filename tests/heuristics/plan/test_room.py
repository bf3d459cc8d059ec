"""Whether a change fits into what a GPU has free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import NO_LINES
from heuristics.plan.allowed import Permits
from heuristics.plan.planned import Planned, Refused
from heuristics.plan.refusals import Considered, refusals, room_for
from heuristics.run.run import Run
from tests.configurations.sizes import published, tiny
from traces.settings.settings import Settings, Value
from traces.training_log.log import LoggedMemory, OutOfMemory, TrainingLog

GB = 10**9
MLA_KEPT = {"recompute_modules": ("moe_act",)}


def deepseek() -> Settings:
    return published(
        "deepseek_v3", seq_length=4096, pipeline_model_parallel_size=8, expert_model_parallel_size=32,
        world_size=256, train__micro_batch_size=1, train__global_batch_size=2048,
        virtual_pipeline_model_parallel_size=4, pipeline_model_parallel_layout="Et|(tt|)*30mL",
        recompute_granularity="selective", recompute_modules=("mla_up_proj", "moe_act"),
        ddp__use_distributed_optimizer=True,
    )  # fmt: skip


def run_with(peak_gb: float | None, capacity_gb: int | None, known: Settings | None = None) -> Run:
    memory = () if peak_gb is None else (LoggedMemory(1, 0, peak_allocated_bytes=round(peak_gb * GB)),)
    shown = Observed(memory_bytes=None if capacity_gb is None else capacity_gb * GB)
    return Run(observed=shown, settings=known or deepseek(), log=TrainingLog("log", 1, memory=memory))


def test_what_frees_memory_fits_even_where_the_room_is_unknown() -> None:
    found = room_for(run_with(None, None), {"recompute_modules": ("mla_up_proj", "moe_act", "layernorm")})
    assert found.fits
    assert found.free_bytes is None
    assert found.because.startswith("frees up to ")


def test_what_frees_memory_is_not_said_to_fit_in_a_run_that_ran_out_of_it() -> None:
    found = room_for(
        replace(run_with(None, 80), does_not_fit=True),
        {"recompute_modules": ("mla_up_proj", "moe_act", "layernorm")},
    )
    assert found.fits is None
    assert found.because.endswith("whether that suffices is unknown")


def test_without_a_measured_peak_the_estimate_tells_the_room() -> None:
    found = room_for(run_with(None, 1000), MLA_KEPT)
    assert found.fits
    assert "that the estimate counts, of 1,000 GB" in found.because
    assert room_for(run_with(None, 40), MLA_KEPT).fits is False


def test_the_fullest_rank_counts() -> None:
    ranks = tuple(LoggedMemory(1, rank, peak_allocated_bytes=(50 + 10 * rank) * GB) for rank in range(3))
    run = replace(run_with(None, 100), log=TrainingLog("log", 1, memory=ranks))
    assert room_for(run, MLA_KEPT).free_bytes == 20 * GB


def test_reserved_memory_stands_in_for_allocated() -> None:
    ranks = (LoggedMemory(1, 0, peak_reserved_bytes=60 * GB),)
    run = replace(run_with(None, 100), log=TrainingLog("log", 1, memory=ranks))
    assert room_for(run, MLA_KEPT).free_bytes == 30 * GB


def test_without_a_log_the_trace_tells_the_peak() -> None:
    run = Run(observed=Observed(memory_bytes=80 * GB, peak_bytes=52 * GB), settings=tiny())
    assert room_for(run, {"train.micro_batch_size": 1}).free_bytes == 20 * GB


def test_an_out_of_memory_error_tells_the_capacity() -> None:
    oom = OutOfMemory(3, "forward", capacity_bytes=80 * GB)
    log = TrainingLog(
        "log", 9, memory=(LoggedMemory(2, 0, peak_allocated_bytes=70 * GB),), out_of_memory=(oom,)
    )
    assert room_for(Run(settings=deepseek(), log=log), MLA_KEPT).free_bytes == 2 * GB


def refused(run: Run, changes: Mapping[str, Value]) -> list[Refused]:
    planned = Planned(CATALOGUE["MEM-2"], NO_LINES, (), None)
    one = Considered(run, planned, (), False, None, Permits(run))
    one.values = dict(changes)
    return list(refusals(one))


def test_a_step_that_does_not_fit_is_refused_until_memory_is_free() -> None:
    full = replace(run_with(175, 200), cost_by_kind_ns={"memory": {"recompute": 200}}, window_ns=1000)
    (found,) = refused(full, MLA_KEPT)
    assert found.because.startswith("needs memory first: +")
    assert refused(run_with(100, 200), MLA_KEPT) == []
