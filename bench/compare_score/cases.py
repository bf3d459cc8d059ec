"""Which pairs are scored: one cause, two at once, none, few steps, one run exported by another version, and
every kind of pair of `kinds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from bench.compare_score.cause import strength_for
from bench.compare_score.causes import CAUSE, CAUSES, SHAPES
from bench.compare_score.kinds import KIND, Drawn
from bench.compare_score.sides import Side
from bench.compare_score.suspects import ALLOWED
from bench.score.scenario import Scenario, perturbed
from bench.simulate.draws import between, uniform, uniforms
from bench.simulate.export import schema_versions
from bench.simulate.knobs import Knobs, draw_knobs
from bench.simulate.recorded import View, draw_view

Family = Literal[
    "one cause", "two causes", "unchanged", "versions", "few steps", "precision", "fusing", "renamed",
    "hiccups", "buckets", "again", "loader", "start", "copies", "recompute",
]  # fmt: skip

SIZES: Final = (0.05, 0.1, 0.3)
STEPS: Final = (2, 5, 20)
FEW: Final = (4, 5, 6, 7)
_TOGETHER_FRAC: Final = 0.1
_FEWEST, _MOST = 8, 20
"""Steps a side of unchanged pairs."""
_SEEDS: Final = 20
"""Seeds of a case: its shape, the noise of both sides, what its strength and its true size are found on."""
_TRUTHS: Final = 3
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
    kind: str = ""

    @property
    def name(self) -> str:
        """What it is called in a table."""
        return " and ".join(self.causes) or self.version or self.kind or f"seed {self.seed}"

    @property
    def changes(self) -> bool:
        """Whether the sides differ by more than noise."""
        return KIND[self.kind].changes if self.kind else bool(self.causes)

    @property
    def has_more(self) -> bool:
        """Whether there are further recordings of what base is."""
        return bool(self.kind) and KIND[self.kind].more is not None

    @property
    def decided_from(self) -> float:
        """From which true difference on it has to be decided, as part of a step."""
        return KIND[self.kind].decided_from if self.kind else 0.0

    @property
    def rows(self) -> tuple[frozenset[str], ...]:
        """Where each cause is to be found, as patterns."""
        if self.kind:
            return (frozenset(KIND[self.kind].rows),) if KIND[self.kind].rows else ()
        return tuple(CAUSE[name].rows for name in self.causes)

    @property
    def suspects(self) -> tuple[str, ...]:
        """Which suspects may stand first, as patterns."""
        if self.kind:
            return KIND[self.kind].suspects
        return tuple(pattern for name in self.causes for pattern in ALLOWED[name])

    @property
    def noise_seeds(self) -> tuple[int, int]:
        """What draws the noise of base and new."""
        return self.seed + 1, self.seed + 1 + (self.family != "versions")

    @property
    def more_seeds(self) -> range:
        """What draws the noise of further recordings of base."""
        return range(self.seed + 15, self.seed + _SEEDS)

    @property
    def true_seeds(self) -> range:
        """What the true difference is found on: other noise than that of the pair."""
        return range(self.seed + 4, self.seed + 4 + (KIND[self.kind].truths if self.kind else _TRUTHS))


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


def few_steps(first_seed: int, count: int) -> Iterator[Case]:
    """Four to seven steps a side: causes by every size in turns, and as often none."""
    for place in range(count):
        seed, steps = first_seed + _SEEDS * place, FEW[place % len(FEW)]
        cause = CAUSES[place * 5 % len(CAUSES)]
        frac = min((*SIZES, 0.0)[place // len(FEW) % 4], cause.most)
        yield Case("few steps", (cause.name,) if frac else (), frac, steps, seed)


def kinds(first_seed: int, share: float = 1.0) -> Iterator[Case]:
    """Every kind of pair, as often as it says."""
    for kind in KIND.values():
        for _ in range(max(round(kind.times * share), 1)):
            steps = Drawn(first_seed).whole("steps", *kind.steps)
            named = f"{kind.family}/{kind.name}"
            yield Case(kind.family, (), 0.0, steps, first_seed, kind=named)  # type: ignore[arg-type]
            first_seed += _SEEDS


def sides(case: Case) -> tuple[Side, Side]:
    """Base and new before their noise is drawn. Raises ValueError where a cause cannot be so large."""
    if case.kind:
        return KIND[case.kind].made(Drawn(case.seed))
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


def more_sides(case: Case) -> tuple[Side, ...]:
    """Further recordings of what base is, where the pair has any."""
    more = KIND[case.kind].more if case.kind else None
    return more(Drawn(case.seed)) if more else ()


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
    needed += [KIND[case.kind].ranges] if case.kind and KIND[case.kind].ranges else []
    drawn = ("steps", "none")[int(2 * uniforms(f"{case.seed}/ranges")[0])]
    ranges = "layers" if "layers" in needed else (needed or [drawn])[0]
    return View(ranges=ranges), View(ranges=ranges)
