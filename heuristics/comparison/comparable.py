"""May two runs be compared at all, and what limits it.

`no` only where a step is other work or another machine's. What people compare on purpose (dispatcher,
precision, graphs, recompute, versions) is `with_differences` at most, and says what cannot be concluded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from heuristics.comparison.configured_alike import SHARES, configured_differences
from heuristics.comparison.recorded_alike import recorded_differences
from heuristics.comparison.said import given_of
from heuristics.comparison.same_work import work_differences
from heuristics.guides.comparable import comparable, untold
from heuristics.result.compared import Comparable, Difference, State
from heuristics.result.rank import Rank
from heuristics.result.result import Result
from heuristics.result.told import known
from heuristics.run.given import Given
from heuristics.run.observed import Observed
from heuristics.run.run import Run

_ORDER: Final[tuple[State, ...]] = ("no", "with_differences", "yes")
_STACK: Final = (
    "container",
    "routing mode",
    "pipeline-parallel size",
    "virtual pipeline stages",
    "pipeline layout",
    "CUDA graph scope",
)
"""Differences across which nothing is said of a dispatcher."""
_VERSIONS: Final = ("Megatron-Core", "Megatron-Bridge", "PyTorch", "Transformer Engine")
_NEEDED: Final = ("container", "routing mode", "PP", "CUDA graphs")
"""What has to be told of both sides before anything is said of a dispatcher, as `HELD_FIXED` names it."""
_SOURCE: Final = (
    "Megatron-Bridge, skills/nemo-mbridge-perf-moe-dispatcher-selection/SKILL.md, pitfalls 1 and 4; "
    "docs/training/moe-optimization.md"
)


def judge_comparable(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Comparable:
    """Compare configuration, work and recording of the two sides. Swapped sides give the mirrored answer."""
    configured = tuple(configured_differences(base, new, base_rank, new_rank))
    other_share = any(one.what in SHARES for one in configured)
    found = [
        *configured,
        *work_differences(base, new, base_rank, new_rank, other_share=other_share),
        *recorded_differences(base, new, base_rank, new_rank),
    ]
    found += _dispatchers(_run(base, base_rank), _run(new, new_rank), found)
    found.sort(key=lambda one: _ORDER.index(one.state))
    return Comparable(found[0].state if found else "yes", tuple(found))


def _dispatchers(base: Run, new: Run, found: Sequence[Difference]) -> Iterator[Difference]:
    """Another dispatcher on a stack that is not known to be the same: no verdict on the dispatcher."""
    names = base.observed.dispatcher, new.observed.dispatcher
    if "none" in names or "unknown" in names or names[0] == names[1]:
        return
    differ = [one.what for one in found if one.what in _STACK]
    differ += [told.partition(":")[0] for told in comparable(base, new) if told.startswith(_VERSIONS)]
    open_ = [name for name in untold(base, new) if name in _NEEDED]
    if differ:
        because = f"No verdict on the dispatcher: these differ too: {', '.join(dict.fromkeys(differ))}."
    elif open_:
        because = (
            f"No verdict on the dispatcher: nothing says that these are the same: {', '.join(open_)}. "
            "Give both configurations."
        )
    else:
        return
    yield Difference("dispatcher", *names, "with_differences", because, _SOURCE)


def _run(result: Result, rank: Rank) -> Run:
    """One side as the choosers see a run, as far as its stack goes."""
    names = {field.name for field in fields(Given)}
    told: dict[str, Any] = {key: value for key, value in given_of(result).items() if key in names}
    log, detected = known(result.log), rank.detected
    if log and "container" in log.versions:
        told.setdefault("container", log.versions["container"])
    shown = Observed(dispatcher=detected.dispatcher, graph_frac=known(detected.graph_share_frac))
    return Run(observed=shown, given=replace(Given(), **told))
