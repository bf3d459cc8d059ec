"""What of a run tables turn on beside its configuration: what its costs, its log and its GPU
tell.
"""

from collections.abc import Mapping
from itertools import repeat
from typing import Final

from heuristics.config.view import Config
from heuristics.facts.dictionary import enter, fact, read
from heuristics.guides.memory_use import memory_use, segments_suffice, too_large
from heuristics.guides.modules import recomputed_now
from heuristics.guides.parallel import guided_cp, sequence_length, wider_cp
from heuristics.run.run import Run
from traces.limits import Limit
from traces.missing import of_known
from traces.names.kernels import COMM_KINDS
from traces.training_log.iterations import steady_step
from traces.training_log.own_lines import loading_frac

EP_KINDS: Final = tuple(kind for kind in COMM_KINDS if kind.startswith("ep_"))
SENDRECV: Final = "sendrecv_unresolved"
GRAPHED_KINDS: Final = ("launch", "python", "arrival")
"""Host overhead that replaying a graph takes away; not data loading, collection, or waits for the
GPU."""
SMALL_EP: Final = Limit(
    8,
    "expert-parallel ranks",
    "ours: no guide has numbers; a maintainer prefers all-to-all up to 8 (Megatron-LM issue 1456), "
    "one node",
)
LARGE_EP: Final = Limit(
    32,
    "expert-parallel ranks",
    "ours: four nodes of eight; the EP of the guides' large DeepSeek-V3 runs and up",
)


def of_experts_ns(kinds: Mapping[str, int]) -> int:
    """What of some costs by kind is of expert all-to-all."""
    return sum(map(kinds.get, EP_KINDS, repeat(0)))


def _share(run: Run, cost_ns: int | None) -> float | None:
    if cost_ns is None or not run.window_ns:
        return None
    return cost_ns / run.window_ns


def ep_share(run: Run) -> float | None:
    """Cost of expert all-to-all over the windows, with what may be some; None: unmeasured."""
    perhaps = () if run.active.sendrecv_of_experts is False else (SENDRECV,)
    return _share(run, run.cost_ns("communication", (*EP_KINDS, *perhaps)))


@fact
def graphed_frac(run: Run) -> float | None:
    """Cost of the host overhead that graphs take away over the windows; None: unmeasured."""
    return _share(run, run.cost_ns("host_overhead", GRAPHED_KINDS))


@fact
def waited_frac(run: Run) -> float | None:
    """The part of a step that waits for data: by the log, else by what was recorded."""
    logged = loading_frac(run.log, steady_step(run.log)) if run.log else None
    if logged is not None:
        return logged
    return (run.observed.absent_frac or {}).get("data")


@fact
def pipeline_dominates(run: Run) -> bool | None:
    """Whether pipeline waiting costs more than expert all-to-all; None: unmeasured."""
    perhaps = (SENDRECV,) if run.active.sendrecv_of_experts is False else ()
    pipeline_ns = run.cost_ns("communication", ("pp_p2p", *perhaps))
    expert_ns = run.cost_ns("communication", EP_KINDS)
    if pipeline_ns is None or expert_ns is None:
        return None
    return pipeline_ns > expert_ns


# ---- the run ----

read(Config, "family", option="--family")
read(Config, "routing", option="--routing")
read(Config, "memory_tight", option="--memory-tight")
read(Run, "program", at="settings.framework")
read(Run, "experts_run", at="active.moe")
read(Run, "layers_recomputed", at="active.recompute_full")


# ---- long sequences ----

enter("tokens", sequence_length)


@fact
def cp_start(run: Run) -> int | None:
    """The CP to start with."""
    return of_known(guided_cp, sequence_length(run))


enter("wider_cp", wider_cp)
enter("exchange_frac", ep_share)

# ---- memory and recompute ----

enter("memory_use", memory_use)
enter("too_large", too_large)
enter("segments_suffice", segments_suffice)
enter("recomputed_now", recomputed_now)


@fact
def ran_out_in(run: Run) -> frozenset[str]:
    """Stages of training in which memory ran out, by the log or as given."""
    stages = {run.active.out_of_memory}
    for error in run.memory_errors:
        stages.add(error.stage)
    return frozenset(filter(None, stages))


@fact
def log_lines(run: Run) -> frozenset[str]:
    """Ids of the lines that the log has of those that we know."""
    if run.log:
        return frozenset(message.id for message in run.log.messages)
    return frozenset()
