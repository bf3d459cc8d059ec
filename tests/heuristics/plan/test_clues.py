"""What points at one fix: of each clue a run that has it and the nearest that has not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.memory_use import segments_suffice
from heuristics.plan.clues import before_tuning, clues, why_first
from heuristics.plan.plan import make_plan
from heuristics.run.repairs import LateRank
from heuristics.run.run import Run
from tests.doubles.fixes import complete
from tests.doubles.opinions import paying
from traces.sections.cause import Cause
from traces.sections.tables import WallId
from traces.settings.settings import settings
from traces.training_log.log import OutOfMemory, TrainingLog

GB: Final = 10**9


def out_of_memory(stage: str = "", pieces: int = 0, asked: int | None = None, **about: object) -> Run:
    """A run of 80 GB that ran out, of 70 GB reserved so many in pieces."""
    error = OutOfMemory(
        7,
        stage or None,  # type: ignore[arg-type]
        capacity_bytes=80 * GB,
        reserved_bytes=70 * GB,
        allocated_bytes=(70 - pieces) * GB,
        unallocated_bytes=pieces * GB,
        requested_bytes=None if asked is None else asked * GB,
        free_bytes=GB,
    )
    log = TrainingLog("train.log", 100, out_of_memory=(error,))
    return Run(given=Given(**about), log=log, does_not_fit=True)  # type: ignore[arg-type]


def exchanging(ns: int, *, gpu: str = "H100", dispatcher: str = "alltoall") -> Run:
    """Of 100 ns communication so many are of experts."""
    run = paying("communication", {"ep_dispatch": ns, "tp": 100 - ns})
    said = Given(gpu=gpu, ep=8, pp=1, flex_package=False, core_version="0.19.0", torch_version="2.9.0")
    return replace(run, observed=Observed(dispatcher=dispatcher), given=said)


def late(saved_frac: float | None, cause: Cause = Cause.ROUTING_IMBALANCE) -> Run:
    return Run(Observed(late_cause=cause.value), late=LateRank(cause, saved_frac, {}, {}))


def launching(kinds: dict[str, int], total: int, **seen: object) -> Run:
    """A run of 1000 ns whose host costs so much."""
    run = paying("host_overhead", kinds)
    return replace(run, total_ns={"host_overhead": total}, observed=Observed(**seen))  # type: ignore[arg-type]


def domain(ranks: str) -> Run:
    said = settings({"env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": ranks}, "run.sh")
    return Run(given=Given(gpu="GB200", ep=32, tp=1, etp=1, cp=1, pp=1), settings=said)


OVERLAP: Final = settings({"overlap_moe_expert_parallel_comm": True}, "run.sh")
CASES: Final[list[tuple[WallId, int, Run, Run]]] = [
    ("memory", 0, out_of_memory(pieces=8, asked=6), out_of_memory(pieces=7, asked=6)),
    ("memory", 1, out_of_memory("optimizer"), out_of_memory("forward")),
    ("memory", 1, out_of_memory("optimizer_state"), out_of_memory("backward")),
    ("memory", 2, replace(out_of_memory("forward"), settings=OVERLAP), out_of_memory("forward")),
    ("memory", 2, replace(out_of_memory("forward"), observed=Observed(ep_overlap=True)), out_of_memory("")),
    ("memory", 4, out_of_memory("graph_capture"), out_of_memory("setup")),
    ("memory", 5, out_of_memory("setup", 1, 60), out_of_memory("setup", 8, 9)),
    ("memory", 6, out_of_memory("setup"), Run()),
    ("communication", 0, domain("8"), domain("32")),
    ("communication", 1, late(0.05), late(0.049)),
    ("communication", 1, late(None), late(None, Cause.SLOW_HOST)),
    ("communication", 2, Run(given=Given(ep=8, etp=2, nvlink_domain=8)), Run(given=Given(ep=8, etp=1))),
    ("communication", 2, Run(given=Given(ep=8, etp=2, nvlink_domain=8)), Run(given=Given(ep=4, etp=2))),
    ("communication", 3, exchanging(51), exchanging(50)),
    ("communication", 3, exchanging(51), exchanging(51, gpu="GB200")),
    ("communication", 3, exchanging(51), exchanging(51, dispatcher="deepep")),
    ("host_overhead", 0, Run(Observed(absent_frac={"data": 0.1})), Run(Observed(absent_frac={"data": 0.09}))),
    ("host_overhead", 1, launching({}, 100), launching({}, 99)),
    ("host_overhead", 1, launching({}, 100), launching({}, 100, graph_frac=0.5)),
    ("host_overhead", 1, launching({}, 100), launching({"launch": 100}, 100)),
    ("compute", 0, Run(Observed(wide_frac=0.1)), Run(Observed(wide_frac=0.09))),
]


@pytest.mark.parametrize(("wall", "place", "has", "has_not"), CASES)
def test_a_clue_holds_where_it_must_and_just_not_beside_it(
    wall: WallId, place: int, has: Run, has_not: Run
) -> None:
    clue = clues()[wall][place]
    assert next(one for one in clues()[wall] if one.when.holds(has)) == clue
    assert not clue.when.holds(has_not)
    assert why_first(has, wall, clue.fix) == f"{clue.reason} ({clue.source})"
    assert why_first(has, wall, "COM-99") == ""
    assert before_tuning(has) == (() if clue.tuning else (clue.fix,))


def test_a_run_of_which_nothing_is_known_has_no_clue() -> None:
    for wall, rows in clues().items():
        assert {why_first(Run(), wall, clue.fix) for clue in rows} == {""}


@pytest.mark.parametrize(
    ("run", "suffice", "first", "modules"),
    [
        (out_of_memory("forward", 17, 18), True, "MEM-1", ("moe_act",)),  # 17 GB in pieces and 1 free
        (out_of_memory("forward", 17, 19), False, "MEM-2", ("moe_act", "layernorm")),
        (Run(does_not_fit=True), None, "MEM-1", ("moe_act",)),
    ],
)
def test_segments_come_first_only_where_they_can_hold_what_was_asked_for(
    run: Run, suffice: bool | None, first: str, modules: tuple[str, ...]
) -> None:
    """Else recompute does, and of more."""
    run = replace(complete({"seq_length": 4096}), log=run.log, does_not_fit=True)
    assert segments_suffice(run) is suffice
    assert make_plan(run, ["memory"], CATALOGUE).fixes[0].fix.id == first
    assert CATALOGUE["MEM-2"].change(run).set["recompute_modules"] == modules
