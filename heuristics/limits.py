"""Thresholds that several judgements share, beside those of facts (`traces/limits.py`)."""

from typing import Final

from traces.limits import Limit

LITTLE: Final = Limit(
    0.01,
    "fraction of the whole",
    "what costs under 1 % of the step is no finding (the walls' definition); clocks alone move as much",
)
QUARTER: Final = Limit(
    0.25,
    "fraction of the whole",
    "recordings of unrelated programs share up to 0.16 of their kernels, one program with full recompute, "
    "another dispatcher or FP8 0.47 and more; NeMo RL issue 917 calls 25 % of idle time the first to act on",
)
NEARLY_ALL: Final = Limit(
    0.90, "fraction of the whole", "all but a wall: what is missing of it is less than a wall may be"
)
SEVERAL: Final = Limit(
    3, "of a kind", "of two, one may be the odd one: three are the fewest that have a middle"
)
