"""What a scenario is: a run said in a few knobs, and the verdict it is built for.

Every time and size is drawn a little anew for each seed, so that no figure of a scenario is what is scored.
Whether it truly is what it is built for, the simulator says (`bench.score.built`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bench.simulate.draws import between, uniform
from bench.simulate.knobs import Knobs
from bench.simulate.ranges import RANGES
from bench.simulate.recorded import View

COMM, HOST, MEM, COMP = "communication", "host_overhead", "memory", "compute"
_JITTER: Final = 1.12
"""Times and sizes are drawn from a twelfth below to a twelfth above what is written."""
_KEPT: Final = frozenset({"step_count", "microbatch_count", "local_expert_count", "comm_block_count"})
"""What says the shape of a run, and stays."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run and the verdict it is built for. `wall`: the largest cost; None: nothing costs a tenth.

    `second`: a wall beside it, either may be the larger. `masked`: what costs under a tenth as long as the
    wall stands, and more once it is gone. `view`: how it is recorded; None: with step ranges and without.
    """

    name: str
    wall: str | None
    knobs: Knobs
    second: str | None = None
    masked: str | None = None
    view: View | None = None
    damage: str = ""


def perturbed(scenario: Scenario, seed: int) -> Knobs:
    """The knobs of a scenario as this seed draws them."""
    knobs = scenario.knobs
    drawn: dict[str, object] = {"seed": seed}
    for one in RANGES:
        value = getattr(knobs, one.knob)
        if value and one.knob not in _KEPT:
            share = uniform(f"{seed}/{scenario.name}/{one.knob}")
            value = value * between(share, 1 / _JITTER, _JITTER, by_factors=True)
            drawn[one.knob] = round(value) if one.whole else value
    if knobs.reserved_frac:
        drawn["reserved_frac"] = min(float(str(drawn["reserved_frac"])), 0.98)
    return replace(knobs, **drawn)  # type: ignore[arg-type]


PLAIN: Final = Knobs(step_count=3)
TUNED: Final = replace(PLAIN, dispatch_us=25.0, peer_late_us=1.0, gradient_us=40.0, data_stall_ms=0.0)
DENSE: Final = replace(TUNED, dispatcher="none", layer_count=6)
SMALL: Final = replace(
    TUNED, attention_us=30.0, dense_gemm_us=40.0, expert_gemm_us=80.0, small_kernel_us=4.0, head_us=80.0,
    optimizer_us=150.0, dispatch_us=8.0, gradient_us=10.0,
)  # fmt: skip
"""Little work for the GPU, as with few tokens."""
