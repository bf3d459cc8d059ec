"""The dispatcher chooser: each row of the catalogue's test table, B01 to B30, and the table as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Guidance
from heuristics.config.observed import Observed
from heuristics.guides.dispatcher import (
    DispatcherChoice,
    backend_extras,
    backend_notes,
    choose_dispatcher,
    refusals,
)
from heuristics.guides.table import fire, table
from heuristics.run.run import Run
from tests.doubles.runs import BOTH, run_by, run_of, run_that


def newer(run: Run) -> Run:
    return replace(run, given=replace(run.given, guidance="main-2026-08"))


def said(choice: DispatcherChoice) -> str:
    return " ".join(choice.notes)


# known; by each edition the first, or the candidates where none wins; the seed's row; part of its notes
ROWS = [
    ({"gpu": "H100", "ep": 64, "family": "dsv3"}, "deepep", "deepep hybridep", "dsv3-hopper",
     "as EP and PP grow"),
    ({"gpu": "B200", "ep": 32}, "deepep", "deepep hybridep", "blackwell-nvl8",
     "unless this platform has its own HybridEP"),
    ({"gpu": "GB200", "ep": 31, "family": "other"}, "hybridep", "hybridep", "nvl72", ""),
    ({"gpu": "GB200", "ep": 32, "family": "other"}, "hybridep", "hybridep", "large-ep-nvl72", ""),
    ({"gpu": "GB200", "ep": 64, "pp": 4, "family": "dsv3"}, "hybridep", "hybridep", "dsv3-nvl72",
     "as EP and PP grow"),
    ({"stage": "bring_up"}, "alltoall", "alltoall", "bring-up", "correctness first"),
    ({"ep": 64}, "alltoall", "alltoall", "unknown-gpu", ""),
    ({"gpu": "H100", "ep": 8, "etp": 2}, "deepep", "deepep hybridep", "hopper", ""),
    ({"gpu": "H100", "ep": 16, "family": "other"}, "deepep", "deepep hybridep", "medium-ep",
     "often becomes worthwhile"),
    ({"gpu": "H100", "ep": 32, "family": "qwen3_235b"}, "deepep", "alltoall", "qwen3-235b-hopper", ""),
    ({"gpu": "GB200", "ep": 32, "family": "qwen3_235b"}, "hybridep", "hybridep", "qwen3-235b-nvl72",
     "needs less memory"),
    ({"gpu": "H100", "ep": 16, "family": "qwen3_30b"}, "deepep", "hybridep", "qwen3-30b",
     "save time too, but less"),
    ({"gpu": "GB200", "ep": 32, "family": "qwen3_next", "precision": "bf16"},
     "alltoall hybridep", "alltoall hybridep", "qwen3-next-bf16", ""),
    ({"gpu": "GB200", "ep": 32, "family": "qwen3_next", "precision": "mxfp8"},
     "hybridep", "hybridep", "qwen3-next-low-precision", "grouped GEMM"),
    ({"gpu": "GB200", "ep": 32, "family": "qwen3_next", "precision": "bf16", "memory_tight": True},
     "hybridep", "hybridep", "memory-tight", "grouped GEMM"),
    ({"gpu": "GB200", "ep": 32, "family": "vlm", "stage": "bring_up"}, "alltoall", "alltoall", "vlm-bring-up",
     "real vision data"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "seed", "main", "rule", "says"), ROWS)
def test_b01_to_b17_a_dispatcher_is_chosen_by_gpu_ep_family_and_stage(
    what: dict[str, object], seed: str, main: str, rule: str, says: str
) -> None:
    run = run_by(what)
    older, current = choose_dispatcher(run), choose_dispatcher(run, "main-2026-08")
    assert [one.first or " ".join(one.candidates) for one in (older, current)] == [seed, main]
    assert older.rule == rule
    assert says in said(older)
    assert choose_dispatcher(newer(run)) == current


def test_b21_seed_000_hybridep_on_h100_is_allowed_across_two_domains_of_eight() -> None:
    run = run_of(Observed(dispatcher="hybridep"), gpu="H100", ep=16, etp=1)
    assert refusals(run, "hybridep") == []
    extras = backend_extras(run, "hybridep")
    assert extras[:2] == ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", "USE_MNNVL=0")
    notes = " ".join(backend_notes(run, "hybridep"))
    assert "depends on the topology" in notes
    assert "inter-node path" in notes
    current = choose_dispatcher(newer(run))
    assert (current.first, current.candidates) == (None, ("deepep", "hybridep"))
    assert set(extras) <= set(current.extras)


def test_b26_seed_000_on_gb200_binding_comes_before_a_swap() -> None:
    run = run_of(Observed(dispatcher="alltoall"), gpu="GB200", ep=64, cpu_bound_to_numa=False)
    assert choose_dispatcher(run).before == ("HST-1",)
    assert choose_dispatcher(replace(run, given=replace(run.given, cpu_bound_to_numa=True))).before == ()
    unknown = choose_dispatcher(replace(run, given=replace(run.given, cpu_bound_to_numa=None)))
    assert unknown.before == ()
    assert "--cpu-bound-to-numa" in unknown.asks
    assert choose_dispatcher(replace(run, observed=Observed(dispatcher="hybridep"))).before == ()


@pytest.mark.parametrize("edition", BOTH)
def test_every_row_of_the_table_can_fire(edition: Guidance) -> None:
    rules = table("dispatcher")[edition]
    ids = [rule.id for rule in rules]
    assert len(ids) == len(set(ids))
    unmet = {"package": True, "stage_now": "tuned", "hardware": None, "family": "other"}
    unmet |= {"ep_size": None, "crosses": True, "runs_low_precision": False, "memory_tight": False}
    for rule in rules:
        assert fire("dispatcher", run_that(rule, unmet), edition).row is rule
