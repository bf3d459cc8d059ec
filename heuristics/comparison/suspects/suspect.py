"""One cause that can explain a part of a difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """One cause. `rows` are those it can move and that moved its way, `explains_ns` their sum per step.

    `id` names the rule (`graphs_stopped`, `nccl_host_cpu`), a knob (`knob.moe_token_dispatcher_type`) or what
    else changed (`version.torch`). `confidence`: high where it is said and the trace shows it, medium where
    one of the two, low where it is only consistent. `because`: one sentence per piece of evidence. `next`:
    what to do to be sure. `source`: where the rule comes from. `seen`: of `because` what is more than the
    figures of its rows.
    """

    id: str
    title: str
    rows: tuple[str, ...]
    explains_ns: int
    confidence: Confidence
    because: tuple[str, ...]
    next: str
    source: str
    seen: tuple[str, ...] = ()
