"""Which pairs are scored: one cause, two at once, none, and one run that was exported by another version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from bench.compare_score.cause import strength_for
from bench.compare_score.causes import CAUSE, CAUSES, SHAPES
from bench.compare_score.sides import Side
from bench.score.scenario import Scenario, perturbed
from bench.simulate.draws import between, uniform, uniforms
from bench.simulate.export import schema_versions
from bench.simulate.knobs import Knobs, draw_knobs
from bench.simulate.recorded import View, draw_view

Family = Literal["one cause", "two causes", "unchanged", "versions"]

SIZES: Final = (0.05, 0.1, 0.3)
STEPS: Final = (2, 5, 20)
_TOGETHER_FRAC: Final = 0.1
_FEWEST, _MOST = 8, 20
"""Steps a side of unchanged pairs."""
_SEEDS: Final = 20
"""Seeds of a case: its shape, the noise of both sides, what its strength and its true size are found on."""
_TRUTHS: Final = 4
_EVERYWHERE: Final = frozenset({"clocks throttled"})
"""Causes that move every row, and so stand beside no other."""


@dataclass(frozen=True, slots=True)
class Case:
    """One pair, said in words; it is made where it is scored. `seed`: the first of those that it may use."""

    family: Family
    causes: tuple[str, ...]
    frac: float
    step_count: int
    seed: int
    version: str = ""

    @property
    def name(self) -> str:
        """What it is called in a table."""
        return " and ".join(self.causes) or self.version or f"seed {self.seed}"

    @property
    def rows(self) -> tuple[frozenset[str], ...]:
        """Where each cause is to be found."""
        return tuple(CAUSE[name].rows for name in self.causes)

    @property
    def noise_seeds(self) -> tuple[int, int]:
        """What draws the noise of base and new."""
        return self.seed + 1, self.seed + 1 + (self.family != "versions")

    @property
    def true_seeds(self) -> range:
        """What the true difference is found on: other noise than that of the pair."""
        return range(self.seed + 4, self.seed + 4 + _TRUTHS)


def one_cause(first_seed: int) -> Iterator[Case]:
    """Every cause by every size, with few and many steps."""
    for cause in CAUSES:
        for frac in SIZES:
            for step_count in STEPS:
                yield Case("one cause", (cause.name,), min(frac, cause.most), step_count, first_seed)
                first_seed += _SEEDS


def two_causes(first_seed: int, count: int) -> Iterator[Case]:
    """Two causes of one shape whose rows are apart, drawn from all such; each a tenth of the step."""
    both = [
        (one.name, other.name)
        for one, other in combinations(CAUSES, 2)
        if one.shape == other.shape and not one.rows & other.rows and not {one.name, other.name} & _EVERYWHERE
    ]
    drawn = sorted(both, key=lambda names: uniform(f"{first_seed}/{names}"))
    for place, names in enumerate(drawn[:count]):
        yield Case("two causes", names, _TOGETHER_FRAC, STEPS[-1], first_seed + _SEEDS * place)


def unchanged(first_seed: int, count: int) -> Iterator[Case]:
    """The same knobs with other noise: drawn ones, and every shape in turn."""
    for seed in range(first_seed, first_seed + _SEEDS * count, _SEEDS):
        step_count = round(between(uniform(f"{seed}/steps"), _FEWEST, _MOST))
        yield Case("unchanged", (), 0.0, step_count, seed)


def versions(first_seed: int) -> Iterator[Case]:
    """One run in every schema, beside the newest."""
    for version in schema_versions():
        yield Case("versions", (), 0.0, _FEWEST, first_seed, version)


def sides(case: Case) -> tuple[Side, Side]:
    """Base and new before their noise is drawn. Raises ValueError where a cause cannot be so large."""
    if not case.causes:
        side = Side(_shape(case))
        return side, side
    causes = [CAUSE[name] for name in case.causes]
    side = Side(perturbed(Scenario(causes[0].shape, None, causes[0].knobs), case.seed))
    base, new = side, side
    for cause in causes:
        strength = strength_for(cause, side, case.frac, case.seed + 3)
        base, new = cause.change(base, strength)[0], cause.change(new, strength)[1]
    return base, new


def _shape(case: Case) -> Knobs:
    place = case.seed // _SEEDS
    if place % 2 or case.family == "versions":
        name = list(SHAPES)[place // 2 % len(SHAPES)]
        return perturbed(Scenario(name, None, SHAPES[name]), case.seed)
    small = {"layer_count": 2, "microbatch_count": 1 + place // 2 % 2}
    return draw_knobs(case.seed, step_count=case.step_count, **small)


def views(case: Case) -> tuple[View, View]:
    """How base and new are recorded."""
    if case.family == "versions":
        return View(), View(schema=case.version)
    if case.family == "unchanged" and not case.seed // _SEEDS % 2:
        return draw_view(case.seed), draw_view(case.seed)
    needed = [ranges for name in case.causes if (ranges := CAUSE[name].ranges)]
    drawn = ("steps", "none")[int(2 * uniforms(f"{case.seed}/ranges")[0])]
    ranges = "layers" if "layers" in needed else (needed or [drawn])[0]
    return View(ranges=ranges), View(ranges=ranges)
