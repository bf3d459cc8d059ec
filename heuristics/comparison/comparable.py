"""May two runs be compared at all, and what limits it.

`no` only where a step is other work or another machine's. What people compare on purpose (dispatcher,
precision, graphs, recompute, versions) is `with_differences` at most, and names what cannot be concluded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from heuristics.comparison.configured_alike import SHARES, STACK, configured_differences
from heuristics.comparison.difference.changed import Value, given_of
from heuristics.comparison.recorded_alike import recorded_differences
from heuristics.comparison.same_work import work_differences
from heuristics.result.compared import Comparable, Difference, State
from heuristics.result.result import Result
from traces.missing import known
from traces.sections.rank import Rank

_ORDER: Final[tuple[State, ...]] = ("no", "with_differences", "yes")
_VERSIONS: Final = {
    "Megatron-Core": "core_version",
    "Megatron-Bridge": "bridge_version",
    "PyTorch": "torch_version",
    "Transformer Engine": "te_version",
}
_NEEDED: Final = {"routing mode": "routing", "PP": "pp", "CUDA graphs": "graphs", "container": "container"}
"""What has to be known of both sides before anything is concluded about a dispatcher."""
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
    found += _dispatchers(_stack(base, base_rank), _stack(new, new_rank), found)
    found.sort(key=lambda one: _ORDER.index(one.state))
    return Comparable(found[0].state if found else "yes", tuple(found))


def _dispatchers(
    base: Mapping[str, Value], new: Mapping[str, Value], found: Sequence[Difference]
) -> Iterator[Difference]:
    """Another dispatcher on a stack that is not known to be the same: no verdict on the dispatcher."""
    names = str(base["dispatcher"]), str(new["dispatcher"])
    if "none" in names or "unknown" in names or names[0] == names[1]:
        return
    differ = [one.what for one in found if one.what in STACK]
    differ += [
        name
        for name, key in _VERSIONS.items()
        if None not in (pair := _both(base, new, key)) and len({*pair}) > 1
    ]
    open_ = [name for name, key in _NEEDED.items() if None in _both(base, new, key)]
    if differ:
        because = f"No verdict on the dispatcher: these differ too: {', '.join(dict.fromkeys(differ))}."
    elif open_:
        because = (
            f"No verdict on the dispatcher: it is not known whether these are the same: {', '.join(open_)}. "
            "Give both configurations."
        )
    else:
        return
    yield Difference("dispatcher", *names, "with_differences", because, _SOURCE)


def _both(base: Mapping[str, Value], new: Mapping[str, Value], key: str) -> tuple[Value, Value]:
    return base.get(key), new.get(key)


def _stack(result: Result, rank: Rank) -> dict[str, Value]:
    """What is known of one side beside its dispatcher."""
    log, detected = known(result.log), rank.detected
    container = log.versions.get("container") if log else None
    graphs = known(detected.graph_share_frac)
    return {"container": container, **given_of(result), "dispatcher": detected.dispatcher, "graphs": graphs}
