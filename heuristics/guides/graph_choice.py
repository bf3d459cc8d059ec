"""What the table of CUDA graphs answers."""

from __future__ import annotations

from dataclasses import dataclass

from heuristics.guides.graph_config import Impl
from heuristics.guides.table import Refusal
from heuristics.run.given import Guidance


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """What the guide says of a run.

    `impl` and `modules`: what to capture first (`none`: no graphs). `then`: what may follow, one at a time
    after an A/B; `never`: what must not. `rule` names the row that fired, `guidance` its edition. `needs`:
    what to set with it. `asks`: options that would settle what is unknown and matters. `refused`: modules or
    implementations ruled out on this run, why, and by whom. `other`: what the other edition says, where it
    says another thing.
    """

    impl: Impl
    modules: tuple[str, ...]
    then: tuple[str, ...]
    never: tuple[str, ...]
    rule: str
    guidance: Guidance
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    sources: tuple[str, ...] = ()
    other: GraphChoice | None = None
