"""Facts of a run that tables ask for beside those of its configuration, and what they are told by."""

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.features import FLEX
from heuristics.config.logic import all_of
from heuristics.config.view import Config
from heuristics.guides.memory_use import segments_suffice, too_large
from heuristics.guides.modules import exhausted, is_short, recomputed_now
from heuristics.guides.parallel import LONG, VERY_LONG, guided_cp, sequence_length
from heuristics.run.run import Run
from traces.limits import WALL, Limit
from traces.measure.tensor_cores import TF32_SINCE as BF16_SINCE
from traces.names.kernels import COMM_KINDS
from traces.settings.precision import BITS
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


SMALL_EXPERT: Final = Limit(
    3072,
    "width of an expert",
    "Megatron-Bridge pull request 3561: 2,880 and top-4 of GPT-OSS-120B is too little for HybridEP's set-up",
)
FEW_CHOICES: Final = Limit(4, "experts a token", "Megatron-Bridge pull request 3561: top-4 of GPT-OSS-120B")


def is_low_precision(run: Run) -> bool | None:
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


def host_visible(run: Run) -> bool | None:
    """Whether the host overhead that graphs take away is large enough to act on; None: unmeasured."""
    share = _share(run, run.cost_ns("host_overhead", GRAPHED_KINDS))
    return None if share is None else share >= WALL.value


def small_experts(config: Config) -> bool | None:
    """Whether a token's experts are too little work to repay what HybridEP sets up."""
    width, choices = config.positive("moe_ffn_hidden_size"), config.positive("moe_router_topk")
    if width is None or choices is None:
        return None
    return width <= SMALL_EXPERT.value and choices <= FEW_CHOICES.value


def waited_for_data(run: Run) -> float | None:
    """The part of a step that waits for data: by the log, else by what was recorded."""
    logged = loading_frac(run.log, steady_step(run.log)) if run.log else None
    return logged if logged is not None else (run.observed.absent_frac or {}).get("data")


def pipeline_dominates(run: Run) -> bool | None:
    """Whether pipeline waiting costs more than expert all-to-all; None: unmeasured."""
    others = (SENDRECV,) if run.active.sendrecv_of_experts is False else ()
    pipeline_ns = run.cost_ns("communication", (*PP_KINDS, *others))
    expert_ns = run.cost_ns("communication", EP_KINDS)
    return None if pipeline_ns is None or expert_ns is None else pipeline_ns > expert_ns


def is_sync_free(run: Run) -> bool | None:
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


def _ep_size(run: Run) -> str | None:
    ep = run.config.ep
    if ep is None:
        return None
    return "small" if ep <= SMALL_EP.value else "large" if ep >= LARGE_EP.value else "medium"


def _architecture(run: Run) -> str | None:
    """hopper or blackwell by compute capability (9.0; 10.0 and 10.3), volta before 8.0, other, or None."""
    capability = run.config.capability
    if capability is None:
        return None
    if capability == (9, 0):
        return "hopper"
    return "blackwell" if capability[0] == 10 else "volta" if capability < BF16_SINCE else "other"


def _fp8_runs(run: Run) -> bool | None:
    bits = run.config.running_bits
    return None if bits is None else bits <= BITS["mxfp8"]


def _pressure(run: Run) -> str:
    """One of three words, as unknown pressure has rows of its own."""
    return "high" if is_short(run) else "low" if run.config.memory_tight is False else "unknown"


GUIDE_FACTS: Final[Mapping[str, Fact]] = {
    # of the run; one of unknown stage counts as tuned: it runs well enough to be recorded
    "stage_now": Fact(lambda run: run.config.stage or "tuned"),
    "family": Fact(lambda run: run.config.family, option="--family"),
    "experts_run": Fact(lambda run: run.active.moe),
    "routing": Fact(lambda run: run.config.routing, option="--routing"),
    "memory_tight": Fact(lambda run: run.config.memory_tight, option="--memory-tight"),
    "no_memory_error": Fact(lambda run: not run.does_not_fit),
    "layers_recomputed": Fact(lambda run: run.active.recompute_full),
    # long sequences
    "tokens": Fact(sequence_length),
    "long_from": Fact(lambda run: int(LONG.value)),
    "very_long_from": Fact(lambda run: int(VERY_LONG.value)),
    "cp_start": Fact(lambda run: None if (length := sequence_length(run)) is None else guided_cp(length)),
    # dispatcher
    "package": Fact(
        lambda run: run.active.dispatcher in ("deepep", "hybridep") or run.config.flex_package,
        option="--flex-package",
    ),
    "ep_size": Fact(_ep_size, option="--ep"),
    "pipeline_dominates": Fact(pipeline_dominates),
    "crosses": Fact(lambda run: run.config.spans_domain is True),
    "flex_runs": Fact(lambda run: run.active.dispatcher in FLEX and (run.config.stage or "tuned") == "tuned"),
    "small_experts": Fact(lambda run: small_experts(run.config)),
    "runs_low_precision": Fact(is_low_precision, option="--precision"),
    # CUDA graphs; where they run, a quiet host is what they gave, and no reason to do without them
    "graphs_run": Fact(
        lambda run: run.config.graph_impl not in (None, "none") or bool(run.active.graph_frac)
    ),
    "host_visible": Fact(host_visible),
    "sync_free": Fact(is_sync_free, option="--te-op-fuser"),
    # precision
    "architecture": Fact(_architecture, option="--gpu-model"),
    "fp8_runs": Fact(_fp8_runs, option="--precision"),
    # recompute
    "pressure": Fact(_pressure),
    "more_than_there_is": Fact(lambda run: run.does_not_fit and segments_suffice(run) is False),
    "too_large": Fact(lambda run: too_large(run) is not None),
    "exhausted": Fact(exhausted),
    "moe_recomputed": Fact(lambda run: "moe" in recomputed_now(run)),
    "selective": Fact(lambda run: bool(recomputed_now(run))),
}
"""By name, as in `heuristics.config.facts`; each of a run."""
