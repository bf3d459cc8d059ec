"""Which runs are scored: drawn ones, the scenarios, and small families that each show one thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from bench.score.causes import CAUSES
from bench.score.scenario import Scenario, perturbed
from bench.score.scenarios import SCENARIOS as BUILT
from bench.simulate.draws import between, uniforms
from bench.simulate.knobs import Knobs, draw_knobs, draw_wider, on_gpu
from bench.simulate.recorded import View, draw_view
from bench.simulate.scenarios import SCENARIOS

TUNED: Final = range(220)
"""Seeds that limits were tuned on: never scored."""
SEARCHED: Final = range(1000, 2000)
"""Seeds that errors were looked for in; a published table uses others."""
FIRST_SEED: Final = 5000
"""Where the scored seeds begin unless told: 1000, and 4000 beyond it for the seeds searched."""
_STEPS_SHARE: Final = 3
_FAMILY_SEED: Final = 10_000_000
"""Families take their seeds from here on, plus the first seed, so that they are as fresh as the drawn."""
_CAUSE_SEED: Final = 20_000_000
_CAUSE_RUNS: Final = 10
"""The same for each family of `CAUSES`, which come one after the other."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run as it is simulated, recorded and perhaps broken. `group`: runs that are held together.

    `scenario`: what it is built for, None where nobody says.
    """

    family: str
    group: str
    name: str
    knobs: Knobs
    view: View
    damage: str = ""
    scenario: Scenario | None = None


def corpus(first_seed: int, count: int, only: str = "") -> list[Case]:
    """`count` drawn runs, a third as many whose steps are hard to find, the scenarios, and all families.

    `only`: one family. Raises ValueError for a family that is not there, and for seeds that limits were tuned
    on.
    """
    if first_seed < TUNED.stop:
        raise ValueError(f"seeds {TUNED.start} to {TUNED.stop - 1} are those that limits were tuned on")
    later = _FAMILY_SEED + first_seed
    cases = [
        *(drawn_case(seed) for seed in range(first_seed, first_seed + count)),
        *(steps_case(seed) for seed in range(later, later + -(-count // _STEPS_SHARE))),
        *scenario_cases(later),
        *families(later),
        *cause_cases(_CAUSE_SEED + first_seed),
    ]
    names = sorted({case.family for case in cases})
    if only and only not in names:
        raise ValueError(f"no family {only!r}; there are {', '.join(names)}")
    return [case for case in cases if only in ("", case.family)]


def drawn_case(seed: int) -> Case:
    """A run whose knobs and view are drawn, whatever comes of them."""
    return Case("drawn", "", f"seed {seed}", draw_knobs(seed), draw_view(seed))


def steps_case(seed: int) -> Case:
    """A run whose steps are hard to find: accumulation, two optimizers, half of them cut captures."""
    cut, at = uniforms(f"{seed}/cut"), between(uniforms(f"{seed}/cut")[1], 0.1, 0.9)
    begins, ends = ((0.0, 0.0), (at, 0.0), (0.0, at), (at, between(cut[2], 0.1, 0.9)), (1.0, 1.0))[
        max(0, int(8 * cut[0]) - 3)
    ]
    view, knobs = replace(draw_view(seed), begin_frac=begins, end_frac=ends), draw_wider(seed)
    if begins == ends == 1:  # what was recorded once does not repeat
        knobs = replace(knobs, step_count=4)
    return Case("steps", "", f"steps {seed}", knobs, view)


def scenario_cases(seed: int) -> Iterator[Case]:
    """Every scenario as this seed draws it: with step ranges and without, or as it says."""
    for family, scenarios in BUILT.items():
        for scenario in scenarios:
            knobs = perturbed(scenario, seed)
            views = (scenario.view,) if scenario.view else (View(), View(ranges="none"))
            for view in views:
                name = f"{scenario.name}, ranges {view.ranges}, {seed}"
                yield Case("scenarios", family, name, knobs, view, scenario.damage, scenario)


def cause_cases(seed: int) -> Iterator[Case]:
    """Runs of every cause, each with seeds of its own."""
    for place, (family, draw) in enumerate(CAUSES.items()):
        for own in range(seed + place * _CAUSE_RUNS, seed + (place + 1) * _CAUSE_RUNS):
            knobs, view = draw(own)
            yield Case(family, "", f"{family} {own}", knobs, view)


def families(seed: int) -> Iterator[Case]:
    """All families, each with seeds from `seed` on."""
    for place in range(8):
        yield healthy_case(seed + place, "healthy")
        yield healthy_case(seed + place, "dense")
    for place in range(5):
        yield from spelled(seed + place)
    for place in range(4):
        yield from on_two_gpus(seed + place)
    for place in range(3):
        yield from harmless(seed + place)
        yield from broken(seed + place)


def healthy_case(seed: int, scenario: str) -> Case:
    """A tuned run of any size, with experts or (`dense`) without, in a drawn view."""
    draw = uniforms(f"{seed}/{scenario}")
    times = between(draw[0], 1.0, 2.5, by_factors=True)
    base = SCENARIOS[scenario]
    knobs = replace(
        base,
        seed=seed,
        step_count=round(between(draw[1], 2, 6)),
        attention_us=base.attention_us * times,
        dense_gemm_us=base.dense_gemm_us * times,
        expert_gemm_us=base.expert_gemm_us * times,
        fp8=draw[2] < 0.3,
        end_of_step="read_back" if draw[3] < 0.5 else "none",
    )
    return Case(scenario, "", f"{scenario} {seed}", knobs, draw_view(seed))


def spelled(seed: int) -> Iterator[Case]:
    """One run as NCCL, DeepEP and HybridEP spell it."""
    draw = uniforms(f"{seed}/spelled")
    knobs = Knobs(
        seed=seed,
        dispatch_us=between(draw[0], 40, 500, by_factors=True),
        peer_late_us=between(draw[1], 1, 30, by_factors=True),
        python_us=between(draw[2], 2, 30, by_factors=True),
        recompute=("none", "moe", "full")[int(3 * draw[3])],
        token_sync=draw[4] < 0.5,
        step_count=3,
    )
    for dispatcher in ("alltoall", "deepep", "hybridep"):
        one = replace(knobs, dispatcher=dispatcher)
        yield Case("spelled", f"spelled {seed}", dispatcher, one, View())


def on_two_gpus(seed: int) -> Iterator[Case]:
    """One model and host on an H100 and on a GB200."""
    draw = uniforms(f"{seed}/gpus")
    knobs = Knobs(
        seed=seed,
        dispatch_us=between(draw[0], 330, 500),
        python_us=between(draw[1], 26, 34),  # from there on the host is a wall on every GB200, in truth
        peer_late_us=2.0,
        gradient_us=30.0,
        step_count=3,
    )
    for gpu in ("H100", "GB200"):
        yield Case("two GPUs", f"two GPUs {seed}", gpu, on_gpu(knobs, gpu), View())


def harmless(seed: int) -> Iterator[Case]:
    """What looks like a wall and is none: the name says which."""
    hidden = replace(SCENARIOS["overlapped"], seed=seed)
    tuned = replace(SCENARIOS["dense"], seed=seed, step_count=3)
    waiting = replace(tuned, end_of_step="read_back", attention_us=400.0, dense_gemm_us=500.0, python_us=1.5)
    persistent = replace(tuned, gpu="H100", dense_gemm_us=500.0, attention_us=60.0, small_kernel_us=6.0)
    yield Case("harmless", "communication", f"hidden {seed}", hidden, View())
    yield Case("harmless", "host_overhead", f"waiting {seed}", waiting, View())
    yield Case("harmless", "compute", f"persistent {seed}", persistent, View())


def broken(seed: int) -> Iterator[Case]:
    """A run with every handicap, and captures that hide some or all of them."""
    knobs = Knobs(
        seed=seed,
        dispatch_us=250.0,
        python_us=20.0,
        recompute="full",
        expert_tile_count=60,
        graph_attention=True,
        graph_router=True,
        step_count=3,
    )
    captures = (
        ("no calls", View(calls=False), ""),
        ("graphs not recorded", View(schema="2.9.1", graphs="graph"), ""),
        ("graphs whole", View(graphs="graph"), ""),
        ("no GPU table", View(gpu_table=False), ""),
        ("clocks 325 ms apart", View(), "clocks +325"),
        ("clocks 156 ms apart", View(), "clocks -156"),
    )
    for name, view, damage in captures:
        yield Case("broken", name, f"{name} {seed}", knobs, view, damage)
