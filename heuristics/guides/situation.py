"""What of a run tables turn on beside its configuration: what its costs, its log and its GPU tell."""

from typing import Final

from heuristics.config.features import FLEX
from heuristics.config.logic import all_of
from heuristics.config.view import Config
from heuristics.facts.dictionary import enter, fact, read, told_by
from heuristics.guides.memory_use import has_room_to_halve, is_tight, segments_suffice, too_large
from heuristics.guides.modules import is_short, recomputed_now
from heuristics.guides.parallel import LONG, VERY_LONG, guided_cp, sequence_length
from heuristics.rules.condition import Language
from heuristics.run.run import Run
from traces.limits import WALL, Limit
from traces.measure.tensor_cores import TF32_SINCE as BF16_SINCE
from traces.names.kernels import COMM_KINDS
from traces.settings.precision import BITS
from traces.spelling import percent
from traces.training_log.iterations import steady_step
from traces.training_log.own_lines import loading_frac

EP_KINDS: Final = tuple(kind for kind in COMM_KINDS if kind.startswith("ep_"))
SENDRECV: Final = "sendrecv_unresolved"
PP_KINDS: Final = ("pp_p2p",)
GRAPHED_KINDS: Final = ("launch", "python", "arrival")
"""Host overhead that replaying a graph takes away; not data loading, collection, or waits for the GPU."""
SMALL_EP: Final = Limit(
    8,
    "expert-parallel ranks",
    "ours: no guide has numbers; a maintainer prefers all-to-all up to 8 (Megatron-LM issue 1456), one node",
)
LARGE_EP: Final = Limit(
    32,
    "expert-parallel ranks",
    "ours: four nodes of eight; the EP of the guides' large DeepSeek-V3 runs and up",
)


@told_by(option="--precision")
def runs_low_precision(run: Run) -> bool | None:
    """Whether the matrix work is in FP8 or FP4, by any recipe; None where unknown or mixed."""
    if run.precision is None or run.precision == "mixed":
        return None
    return any(bits in run.precision.lower() for bits in ("fp8", "fp4"))


def _share(run: Run, cost_ns: int | None) -> float | None:
    return None if cost_ns is None or not run.window_ns else cost_ns / run.window_ns


def ep_share(run: Run) -> float | None:
    """Cost of expert all-to-all over the windows, with what may be some; None: unmeasured."""
    others = () if run.active.sendrecv_of_experts is False else (SENDRECV,)
    return _share(run, run.cost_ns("communication", (*EP_KINDS, *others)))


@fact
def host_visible(run: Run) -> bool | None:
    """Whether the host overhead that graphs take away is large enough to act on; None: unmeasured."""
    share = _share(run, run.cost_ns("host_overhead", GRAPHED_KINDS))
    return None if share is None else share >= WALL.value


def waited_for_data(run: Run) -> float | None:
    """The part of a step that waits for data: by the log, else by what was recorded."""
    logged = loading_frac(run.log, steady_step(run.log)) if run.log else None
    return logged if logged is not None else (run.observed.absent_frac or {}).get("data")


@fact
def waits_for_data(run: Run) -> bool | None:
    """Whether as much as a wall waits for data."""
    return None if (share := waited_for_data(run)) is None else share >= WALL.value


@fact
def pipeline_dominates(run: Run) -> bool | None:
    """Whether pipeline waiting costs more than expert all-to-all; None: unmeasured."""
    others = (SENDRECV,) if run.active.sendrecv_of_experts is False else ()
    pipeline_ns = run.cost_ns("communication", (*PP_KINDS, *others))
    expert_ns = run.cost_ns("communication", EP_KINDS)
    return None if pipeline_ns is None or expert_ns is None else pipeline_ns > expert_ns


@told_by(option="--te-op-fuser")
def sync_free(run: Run) -> bool | None:
    """Whether a dropless run sends no expert size back to the host, so that one graph can hold an iteration.

    HybridEP, MXFP8 on Blackwell and Transformer Engine's op fuser: what Megatron-Bridge's tuned MXFP8 recipes
    of GB200, GB300 and B300 have in common (perf_recipes), with paged stash.
    """
    hardware = run.config.hardware_class
    return all_of(
        None if hardware is None else hardware in ("blackwell_nvl8", "nvl72"),
        None if run.precision is None else "mxfp8" in run.precision.lower(),
        None if run.active.dispatcher == "unknown" else run.active.dispatcher == "hybridep",
        run.config.te_op_fuser,
    )


# ---- the run; one of unknown stage counts as tuned: it runs well enough to be recorded ----

read(Config, "family", option="--family")
read(Config, "routing", option="--routing")
read(Config, "memory_tight", option="--memory-tight")
read(Run, "program", at="settings.framework")
read(Run, "experts_run", at="active.moe")
read(Run, "layers_recomputed", at="active.recompute_full")


@fact
def stage_now(run: Run) -> str:
    """How far the run is tuned."""
    return run.config.stage or "tuned"


@fact
def no_memory_error(run: Run) -> bool:
    """Whether the run fits."""
    return not run.does_not_fit


# ---- long sequences ----

enter("tokens", sequence_length)


@fact
def long_from(run: Run) -> int:
    """Tokens of a sequence from which it is long."""
    return int(LONG.value)


@fact
def very_long_from(run: Run) -> int:
    """Tokens of a sequence from which it is very long."""
    return int(VERY_LONG.value)


@fact
def cp_start(run: Run) -> int | None:
    """The CP to start with."""
    length = sequence_length(run)
    return None if length is None else guided_cp(length)


# ---- dispatchers ----


@told_by(option="--flex-package")
def package(run: Run) -> bool | None:
    """Whether a package of a flex backend is there."""
    return run.active.dispatcher in ("deepep", "hybridep") or run.config.flex_package


@told_by(option="--ep")
def ep_size(run: Run) -> str | None:
    """How many ranks experts are spread over: small, medium or large."""
    ep = run.config.ep
    if ep is None:
        return None
    return "small" if ep <= SMALL_EP.value else "large" if ep >= LARGE_EP.value else "medium"


@fact
def ep_shown(run: Run) -> str | None:
    """What expert all-to-all costs, as part of the windows."""
    return None if (share := ep_share(run)) is None else percent(share)


@fact
def exchanges_show(run: Run) -> bool | None:
    """Whether that is as much as a wall."""
    return None if (share := ep_share(run)) is None else share >= WALL.value


enter("exchange_frac", ep_share)


@fact
def crosses(run: Run) -> bool:
    """Whether the expert ranks are known to be more than one NVLink domain holds."""
    return run.config.spans_domain is True


@fact
def flex_runs(run: Run) -> bool:
    """Whether a flex backend runs, tuned."""
    return run.active.dispatcher in FLEX and stage_now(run) == "tuned"


# ---- CUDA graphs and precision ----


@fact
def graphs_run(run: Run) -> bool:
    """Where they run, a quiet host is what they gave, and no reason to do without them."""
    return run.config.graph_impl not in (None, "none") or bool(run.active.graph_frac)


@told_by(option="--gpu-model")
def architecture(run: Run) -> str | None:
    """hopper or blackwell by compute capability (9.0; 10.0 and 10.3), volta before 8.0, other, or None."""
    capability = run.config.capability
    if capability is None:
        return None
    if capability == (9, 0):
        return "hopper"
    return "blackwell" if capability[0] == 10 else "volta" if capability < BF16_SINCE else "other"


@told_by(option="--precision")
def fp8_runs(run: Run) -> bool | None:
    """Whether matrix work is in 8 bits or fewer."""
    bits = run.config.running_bits
    return None if bits is None else bits <= BITS["mxfp8"]


# ---- memory and recompute ----

enter("memory_short", is_tight)
enter("room_to_halve", has_room_to_halve)


@fact
def pressure(run: Run) -> str:
    """One of three words, as unknown pressure has rows of its own."""
    return "high" if is_short(run) else "low" if run.config.memory_tight is False else "unknown"


@fact
def ran_out_in(run: Run) -> frozenset[str]:
    """Stages of training in which memory ran out, by the log or as given."""
    stages = [one.stage for one in run.log.out_of_memory] if run.log else []
    return frozenset(filter(None, (*stages, run.active.out_of_memory)))


@fact
def more_than_there_is(run: Run) -> bool:
    """Whether the run does not fit, and would not without fragments."""
    return run.does_not_fit and segments_suffice(run) is False


@fact
def beyond_capacity(run: Run) -> bool:
    """Whether more is estimated than the GPU has."""
    return too_large(run) is not None


@fact
def moe_recomputed(run: Run) -> bool:
    """Whether whole MoE layers are recomputed."""
    return "moe" in recomputed_now(run)


@fact
def selective(run: Run) -> bool:
    """Whether modules are recomputed."""
    return bool(recomputed_now(run))


RUNS: Final = Language(Run, {Config: "config"})
"""Conditions that tables ask of a run: of guides, fixes, clues and the workflow."""
