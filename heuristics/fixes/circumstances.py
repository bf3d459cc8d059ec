"""What needs of fixes ask of a run beside what guides do; each is None where unknown."""

from math import gcd
from typing import Final

from heuristics.config.logic import all_of
from heuristics.config.view import Config
from heuristics.facts.dictionary import fact
from heuristics.guides.dispatcher import SHARED_SM_KNOB, choose_dispatcher
from heuristics.guides.memory_use import is_tight, segments_suffice, too_large
from heuristics.guides.modules import captured_alone, recomputed_now
from heuristics.guides.parallel import connections, wider_cp
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import Run
from heuristics.run.sizes import (
    deeper,
    even_layout,
    experts_divide,
    present_layout,
    wider_ep,
)
from heuristics.words import say
from traces.measure.tensor_cores import HALF_SINCE, TF32_SINCE
from traces.settings.values import fullest_rank

SM_BACKENDS: Final = ("deepep", "hybridep")
OPTIMIZER_OFFLOAD: Final = "optimizer.optimizer_cpu_offload"


# ---- dispatchers ----


@fact
def guided_backend(run: Run) -> str:
    """The guide's first; where it has no winner, its first candidate that does not run already."""
    return choose_dispatcher(run).first or other_backends(run)[0]


def other_backends(run: Run) -> list[str]:
    return [backend for backend in choose_dispatcher(run).candidates if backend != run.active.dispatcher]


@fact
def sm_backend_cure(run: Run) -> str:
    """What gives a backend that has SMs of its own."""
    now, chosen = run.active.dispatcher, guided_backend(run)
    none_has_sms = now not in ("unknown", *SM_BACKENDS) and chosen != now and chosen not in SM_BACKENDS
    return "moe_token_dispatcher_type flex" if none_has_sms else "COM-2"


@fact
def unknown_topology(run: Run) -> tuple[str, ...]:
    """Options that tell how experts lie in NVLink domains."""
    sizes = (("--ep", run.config.ep), ("--nvlink-domain", run.config.nvlink_domain))
    return tuple(option for option, size in sizes if size is None)


@fact
def leaves_domain(run: Run) -> bool | None:
    """Where ETP is unknown, an EP that fits stays inside unless kernels are seen to cross nodes."""
    spans, ep, domain = run.config.spans_domain, run.config.ep, run.config.nvlink_domain
    fits = ep is not None and domain is not None and ep <= domain
    inside = run.active.internode is False or (fits and not run.active.internode)
    return spans if spans is not None else False if inside else None


@fact
def ends_waiting(run: Run) -> str:
    """What makes ranks wait less: where the late rank is known its repair, else even routing."""
    return next(iter(run.repairs), say("fixes.repair-of-late-rank")) if run.late else "COM-11"


@fact
def guided_by(run: Run) -> str:
    """The rule of the dispatcher guide."""
    return choose_dispatcher(run).rule


@fact
def guide_asks(run: Run) -> tuple[str, ...]:
    """Options that would settle what it chooses."""
    return choose_dispatcher(run).asks


@fact
def dispatcher_sms(run: Run) -> int | None:
    """SMs that the dispatcher is given."""
    return run.config.positive(SHARED_SM_KNOB, f"moe_{run.active.dispatcher}_num_sms")


# ---- memory ----


@fact
def layer_offload(run: Run) -> bool | None:
    """Whether whole layers are offloaded: by the configuration, else not where no copies show."""
    configured = run.config.on("cpu_offloading")
    return False if configured is None and run.active.offload is False else configured


def turns_offload_down(run: Run) -> bool:
    return run.active.offload is True and not run.does_not_fit


@fact
def narrower_tried(run: Run) -> bool | None:
    """Nobody can say, unless the guide still has something narrower, or memory has room."""
    if run.config.memory_tight is False:
        return False
    return None if choose_recompute(run).granularity != "full" else True


@fact
def gathers_wide(run: Run) -> bool | None:
    """Whether parameters are not gathered in FP8, or its recipe is delayed scaling."""
    allowed = run.config.delayed_scaling or (run.config.running_bits or 0) > 8
    gathered = run.config.on("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    return True if allowed or gathered is False else None


@fact
def cpu_steps(run: Run) -> bool:
    """That the CPU steps the optimizer is configured, or seen by its copies."""
    asked = run.config.on(OPTIMIZER_OFFLOAD)
    return bool(run.seen_ns("host_overhead", ("cpu_optimizer",))) if asked is None else asked


@fact
def te_layers(run: Run) -> bool | None:
    """Whether layers are Transformer Engine's."""
    kind = run.config.first("transformer_impl")
    return None if kind is None else kind == "transformer_engine"


@fact
def engine(run: Run) -> bool | None:
    """Transformer Engine, by the layers, else by its release."""
    layers = te_layers(run)
    return layers if layers is not None else bool(run.config.version_text("te")) or None


@fact
def room_given(run: Run) -> bool | None:
    """Whether memory is said to have room."""
    return (run.config.memory_tight is False) or None


@fact
def moe_captured(run: Run) -> bool | None:
    """Whether a graph holds the whole MoE layer."""
    return captured_alone(run, "moe")


@fact
def preprocess_captured(run: Run) -> bool | None:
    """Whether a graph holds its preprocessing."""
    return captured_alone(run, "moe_preprocess")


@fact
def shared_recomputed(run: Run) -> bool | None:
    """Whether shared experts are recomputed."""
    return None if run.active.recompute_modules is None else "shared_experts" in recomputed_now(run)


@fact
def state_shared(run: Run) -> bool | None:
    """Whether several data-parallel ranks share the optimizer's state."""
    return run.active.dp_active or (run.config.dp or 1) > 1 or None


@fact
def grouped_weights(config: Config) -> bool | None:
    """Whether expert weights are one grouped tensor."""
    return config.on("moe_single_grouped_weight", "moe_single_grouped_bias")


# ---- parallel sizes ----


@fact
def stages_are_even(run: Run) -> bool:
    """Whether a rank has no more to compute, by the split as it is, than one of the layout we name.

    Not where it would add the virtual stages that there are none of: they shorten warm-up and cool-down.
    """
    now, named = run.config.pp_layout or present_layout(run), even_layout(run)
    if now is None or named is None or run.config.pp is None or named[1] > (run.config.vpp or 1):
        return False
    own, best = fullest_rank(now, run.config.pp), fullest_rank(named[0], run.config.pp)
    return own is not None and best is not None and own <= best


def exchange(run: Run) -> tuple[str, tuple[int, ...]]:
    """The kind to try next, and the ranks of its levels: the ring, then what follows it, then nothing."""
    now = run.config.first("cp_comm_type")
    if now in ("a2a", "a2a+p2p"):
        return str(now), ()
    if now != "p2p" or run.config.cp is None:
        return "p2p", ()
    inner = _inside(run, run.config.cp)
    outer = run.config.cp // inner
    return ("a2a+p2p", (inner, outer)) if inner > 1 and outer > 1 else ("a2a", ())


def _heads(run: Run) -> int | None:
    return run.config.positive("num_query_groups") or run.config.positive("num_attention_heads")


def _inside(run: Run, cp: int) -> int:
    """Largest part of CP that divides CP and the heads, and that one NVLink domain holds."""
    domain = run.config.nvlink_domain or cp
    heads = _heads(run) or cp
    heads //= run.config.tp if run.config.tp and not heads % run.config.tp else 1
    both = gcd(cp, heads)
    return max(size for size in range(1, min(both, domain) + 1) if not both % size)


@fact
def cp_divides_heads(run: Run) -> bool | None:
    """Whether CP divides the heads of a rank."""
    heads, cp = _heads(run), run.config.cp
    return None if heads is None or cp is None else heads % (cp * (run.config.tp or 1)) == 0


@fact
def deeper_fits(run: Run) -> bool | None:
    """Whether a layout of more stages fits the layers."""
    known = run.config.positive("num_layers") is not None and run.config.pp is not None
    return next(deeper(run), None) is not None if known else None


@fact
def reads_from_host(run: Run) -> bool | None:
    """Whether weights or state lie on the host: by what copies cost, else by what is configured."""
    if (seen := run.seen_ns("memory", ("host_resident",))) is not None:
        return seen > 0
    told = [run.config.on(knob) for knob in ("cpu_offloading", OPTIMIZER_OFFLOAD)]
    return True if True in told else False if run.settings.by_knob else None


@fact
def out_of_room(run: Run) -> bool | None:
    """Whether memory is too small and not only in pieces: as said, by the estimate, or by an error."""
    if run.config.memory_tight or too_large(run) is not None:
        return True
    if run.active.out_of_memory or (run.log is not None and run.log.out_of_memory):
        return segments_suffice(run) is not True
    return False if run.does_not_fit else is_tight(run)


@fact
def recompute_left(run: Run) -> bool | None:
    """Whether selective recompute has something left; None where nobody knows what it would choose."""
    choice = choose_recompute(run)
    return choice.granularity == "selective" and bool({*choice.modules} - recomputed_now(run))


def experts_cut(run: Run) -> bool:
    return run.active.moe is not False and (run.config.expert_tensor_size or 1) > 1


@fact
def several_gpus(run: Run) -> bool | None:
    """Whether the run has more than one GPU."""
    return run.observed.several_gpus if run.config.world is None else run.config.world > 1


@fact
def next_exchange(run: Run) -> str:
    """The exchange of context parallelism to try next."""
    return exchange(run)[0]


@fact
def exchange_runs(config: Config) -> object:
    """The one that runs."""
    return config.first("cp_comm_type")


@fact
def cp_can_widen(run: Run) -> bool:
    """Whether ranks and tokens divide by a larger CP."""
    return wider_cp(run) is not None


@fact
def wider_ep_divides(run: Run) -> bool | None:
    """Whether experts divide by the next EP."""
    return experts_divide(run, wider_ep(run) or 1)


# ---- what runs already, and what forbids a change ----


@fact
def dp_overlapped(run: Run) -> bool | None:
    """By what compute hides, else by the configuration."""
    switches = (run.config.overlap(f"overlap_{name}") for name in ("grad_reduce", "param_gather"))
    return run.observed.dp_overlapped or all_of(*switches)


@fact
def amd(run: Run) -> bool:
    """Whether its GPU is AMD's."""
    return "rocm" in (run.observed.in_use or ()) or (run.gpu or "").startswith("MI")


@fact
def rollouts_share(run: Run) -> bool | None:
    """Whether an engine of rollouts shares the GPU: by names in the trace, the configuration, or the log."""
    seen = "rollout_engine" in (run.observed.in_use or ())
    told = run.log is not None and any(one.id == "segments-beside-pool" for one in run.log.messages)
    return True if seen or told else run.config.on("launcher.colocated")


@fact
def wgrad_delayed(config: Config) -> bool | None:
    """Whether weight gradients are delayed, by any of the switches."""
    return config.overlap("delay_wgrad_compute")


@fact
def queues(config: Config) -> object:
    """Hardware queues as they are set."""
    return config.first("env.CUDA_DEVICE_MAX_CONNECTIONS")


@fact
def queues_wanted(run: Run) -> str:
    """As many as the run's overlaps want."""
    return str(connections(run))


@fact
def uses(run: Run) -> frozenset[str]:
    """What names in the trace show in use."""
    return frozenset(run.observed.in_use or ())


# ---- precision ----


def _tensor_cores(run: Run, since: tuple[int, int], seen: bool | None) -> bool | None:
    """By the GPU's compute capability, else as its kernels show."""
    return seen if run.active.capability is None else run.active.capability >= since


@fact
def capability_major(config: Config) -> int | None:
    """The first number of the GPU's compute capability."""
    return config.capability and config.capability[0]


@fact
def tf32_cores(run: Run) -> bool | None:
    """Whether the GPU has tensor cores for TF32."""
    return _tensor_cores(run, TF32_SINCE, None)


@fact
def half_cores(run: Run) -> bool | None:
    """Whether the GPU has tensor cores for 16 bits."""
    return _tensor_cores(run, HALF_SINCE, run.active.tensor_cores)


# ---- the host ----


@fact
def numa_known(config: Config) -> bool | None:
    """Whether the GPU is one whose hosts have NUMA nodes that are known."""
    return config.hardware_class not in (None, "other") or None


@fact
def collects(run: Run) -> bool:
    """Whether the collector is seen to stop the host within steps."""
    return bool(run.seen_ns("host_overhead", ("gc",)))


@fact
def collections_show(run: Run) -> bool | None:
    """The same; False where a recorder would have shown it."""
    return collects(run) or (None if run.active.recorder is None else False)


@fact
def data_waited_for(run: Run) -> bool | None:
    """Whether the host waits for data at all."""
    return None if (ns := run.seen_ns("host_overhead", ("data",))) is None else bool(ns)
