"""Ranks whose costs are round numbers, and walls and fixes said in one line.

A rank is a tiny recording, measured once, with every number an opinion rests on put in its place: four steps
of 250 ns, so that 10 ns are one per cent of its 1000 ns window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import structs

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.figures.figures import figures_of
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.result.judged import Evidence, Outcome, Wall
from heuristics.run.run import WALL_IDS, Run
from heuristics.walls import JUDGES, replayed_price
from heuristics.walls.costs import costs_of
from heuristics.walls.price import held
from traces.account.account import Account
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.limits import MOST
from traces.measure.bounds import Bounds
from traces.measure.budget import WindowBudget
from traces.measurements import RankMeasurements, measure_rank
from traces.missing import Missing
from traces.replay.changes.costs import Costs, Without
from traces.replay.proofs import Cost, Proofs
from traces.sections.tables import WallId
from traces.steps.found import Step, Steps, from_steps
from traces.steps.selection import Selection

WINDOW_NS, STEPS = 1_000, 4
KERNEL = "vectorized_elementwise_kernel"
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
Judge = Callable[[Sequence[RankMeasurements]], Wall]
NOBODY = Missing("", "nobody looked", "look")
BLIND = Missing("replay", "clock offset: 3 ms", "record again")
DOUBT = Missing("replay", "what the host waits for is not understood", "record more")
UNBOUNDED = Bounds(None, None, None, None)
SURE = Proofs(residual_free_error_frac=0.0, elastic_frac=0.5, unexplained_frac=0.0)

COMPUTE: Final[Mapping[WallId, Missing]] = {"compute": Missing("", "no wall bounds it", "measure it")}
"""What `make_plan` is given for a run bound by compute."""


def walls_of(ranks: Sequence[RankMeasurements]) -> tuple[Wall, ...]:
    """All walls of a run by its ranks."""
    return tuple(JUDGE[wall](ranks) for wall in WALL_IDS)


def _judge(wall: WallId) -> Judge:
    judge = JUDGES[WALL_IDS.index(wall)].judge
    return lambda ranks: judge(figures_of(ranks), replayed_price(costs_of(ranks), wall))


JUDGE: dict[WallId, Judge] = {wall: _judge(wall) for wall in WALL_IDS}
judge_memory, judge_communication, judge_host, judge_compute = JUDGE.values()


def measured(path: Path) -> RankMeasurements:
    """The only rank of an export."""
    (rank,) = build(read_trace(path)).ranks
    return measure_rank(rank, Selection())


@cache
def _one_kernel() -> RankMeasurements:
    recording = Recording()
    recording.gpu()
    recording.kernel(GEMM, 100, 1_100, launch_ns=50, grid=(132, 1, 1))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, recording)
        return measured(path)


def steps_of(*lengths_ns: int) -> Steps:
    """Steps one after another from 0 on."""
    recorded, now = [], 0
    for index, length_ns in enumerate(lengths_ns):
        recorded.append(Step(index, now, now + length_ns))
        now += length_ns
    return from_steps("nvtx", "ranges", tuple(recorded))


def cost(ns: int, by_kind_ns: Mapping[str, int] | None = None, steps: Sequence[int] | None = None) -> Cost:
    """A ceiling, the same in each of the steps unless said otherwise."""
    each = [ns // STEPS] * STEPS if steps is None else steps
    return Cost(ns, dict(by_kind_ns or {}), tuple(each))


def costs(
    communication: Cost | int = 0,
    host_overhead: Cost | int = 0,
    memory: Cost | int = 0,
    compute: Cost | int | None = 0,
    proofs: Proofs = SURE,
    refused: Missing | None = None,
    at_least: Missing | None = None,
    without: Mapping[str, Without] | None = None,
) -> Costs:
    told = [
        one if isinstance(one, Cost) else cost(one)
        for one in (communication, host_overhead, memory, compute or 0)
    ]
    filled = None if compute is None else told[3]
    return Costs(told[0], told[1], told[2], filled, without or {}, WINDOW_NS, proofs, refused, at_least)


def account(
    starved: Mapping[str, int] | None = None,
    blocking: Mapping[str, int] | None = None,
    arrival_ns: int = 0,
    undecided_ns: int = 0,
) -> Account:
    decided = {"recorded": 0, "inferred": 0, "none": undecided_ns}
    return Account(dict(starved or {}), dict(blocking or {}), arrival_ns, 0, 0, 0, 0, 0, decided)


BEGUN: Final = account({"profiler": 100, "lazy_init": 100})
"""Of a window so much is start-up, twice that which is left in it."""


def budget(compute_ns: int = WINDOW_NS, exposed_comm_ns: int = 0, hidden_comm_ns: int = 0) -> WindowBudget:
    """A window of 1000 ns; what is neither compute nor exposed communication is idle."""
    idle_ns = WINDOW_NS - compute_ns - exposed_comm_ns
    comm = {"other_comm": exposed_comm_ns} if exposed_comm_ns else {}
    return WindowBudget(
        WINDOW_NS, compute_ns, exposed_comm_ns, 0, idle_ns, {"gemm": compute_ns}, comm, {}, hidden_comm_ns
    )


def rank(priced: Costs | Missing | None = None, bytes_known: bool = True, **what: object) -> RankMeasurements:
    """A rank of four steps of Megatron's without a handicap, unless said otherwise.

    Its memory use was recorded, and nothing in it runs a second time.
    """
    plain = _one_kernel()
    memory = structs.replace(
        plain.memory,
        recompute_ns=0,
        recompute_modules={},
        allocator_retry_frac=0.0,
        peak_bytes=40 if bytes_known else NOBODY,
        capacity_bytes=80,
    )
    plain = replace(
        plain,
        steps=steps_of(*[WINDOW_NS // STEPS] * STEPS),
        budget=budget(),
        account=account(),
        costs=costs() if priced is None else priced,
        bounds=UNBOUNDED,
        memory=memory,
        detected=structs.replace(plain.detected, framework="megatron"),
        recorded_host_rows=0,
        cold_ns=0,
    )
    return replace(plain, **what)  # type: ignore[arg-type]


def costing(wall: WallId, ns: int, **what: object) -> RankMeasurements:
    return rank(costs(**{wall: ns}, **what))  # type: ignore[arg-type]


def evidence(found: Wall, measure: str) -> Evidence:
    (one,) = [one for one in found.evidence if one.measure == measure]
    return one


def seen(found: Wall) -> set[str]:
    return {one.measure for one in found.evidence}


def with_memory(one: RankMeasurements, **what: object) -> RankMeasurements:
    return replace(one, memory=structs.replace(one.memory, **what))


def wall(
    number: WallId,
    percent: float | None,
    outcome: Outcome | None = None,
    kinds: Mapping[str, int] | None = None,
    retried: bool = False,
) -> Wall:
    """A wall of a window of 1000 ns; a finding from 10 per cent up unless said otherwise, None: no cost."""
    usual: Outcome = "unmeasurable" if percent is None else "finding" if percent >= 10 else "clear"
    gap = Missing("", "nobody looked", "look")
    missing = (gap.reason,) if percent is None else ()
    frac = gap if percent is None else percent / 100
    ns = gap if percent is None else round(percent * 10)
    again = (
        (held("allocator_retry_frac", 1.0, MOST, unit="fraction of the steps after the first"),)
        if retried
        else ()
    )
    return Wall(number, outcome or usual, ns, frac, dict(kinds or {}), None, again, missing, "look")


def walls(**percent: float | None) -> list[Wall]:
    """All four, those not named at 0 per cent."""
    order: tuple[WallId, ...] = ("memory", "communication", "host_overhead", "compute")
    return [wall(number, percent.get(number, 0.0)) for number in order]


def a_fix(number: str, about: WallId, *needs: Precondition, **what: object) -> Fix:
    """A fix that acts on all of its wall and needs nothing, unless said otherwise."""
    plain = Fix(
        id=number,
        wall=about,
        title=f"the change {number}",
        change=lambda run: Change(),
        advice=lambda run: needs,
        versions="every release",
        verify="look again",
        sources=("a guide",),
    )
    return structs.replace(plain, **what)


def catalogue_of(*fixes: Fix) -> dict[str, Fix]:
    return {fix.id: fix for fix in fixes}


def paying(about: WallId, by_kind_ns: Mapping[str, int], does_not_fit: bool = False) -> Run:
    """A run of 1000 ns of which nothing is known but what the kinds of one wall cost, which add up to it."""
    total = {about: sum(by_kind_ns.values())}
    return Run(Observed(), Given(), {about: by_kind_ns}, WINDOW_NS, total, does_not_fit)
