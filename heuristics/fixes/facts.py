"""What needs of fixes ask of a run beside the facts of guides, by name; each is None where unknown."""

from collections.abc import Mapping
from math import gcd
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.logic import all_of
from heuristics.guides.dispatcher import SHARED_SM_KNOB, choose_dispatcher
from heuristics.guides.facts import GUIDE_FACTS
from heuristics.guides.memory_use import has_room_to_halve, is_tight, segments_suffice, too_large
from heuristics.guides.modules import captured_alone, has_shared_experts, recomputed_now, replays
from heuristics.guides.parallel import connections, wider_cp
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import Run
from heuristics.run.sizes import (
    batch_divides,
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


def backend_to_set(run: Run) -> str:
    """The guide's first; where it has no winner, its first candidate that does not run already."""
    return choose_dispatcher(run).first or other_backends(run)[0]


def other_backends(run: Run) -> list[str]:
    return [backend for backend in choose_dispatcher(run).candidates if backend != run.active.dispatcher]


def _sm_backend_cure(run: Run) -> str:
    now, chosen = run.active.dispatcher, backend_to_set(run)
    none_has_sms = now not in ("unknown", *SM_BACKENDS) and chosen != now and chosen not in SM_BACKENDS
    return "moe_token_dispatcher_type flex" if none_has_sms else "COM-2"


def _unknown_topology(run: Run) -> tuple[str, ...]:
    sizes = (("--ep", run.config.ep), ("--nvlink-domain", run.config.nvlink_domain))
    return tuple(option for option, size in sizes if size is None)


def _leaves_domain(run: Run) -> bool | None:
    """Where ETP is unknown, an EP that fits stays inside unless kernels are seen to cross nodes."""
    spans, ep, domain = run.config.spans_domain, run.config.ep, run.config.nvlink_domain
    fits = ep is not None and domain is not None and ep <= domain
    inside = run.active.internode is False or (fits and not run.active.internode)
    return spans if spans is not None else False if inside else None


def _ends_waiting(run: Run) -> str:
    """What makes ranks wait less: where the late rank is known its repair, else even routing."""
    return next(iter(run.repairs), say("fixes.repair-of-late-rank")) if run.late else "COM-11"


# ---- memory ----


def layer_offload(run: Run) -> bool | None:
    """Whether whole layers are offloaded: by the configuration, else not where no copies show."""
    configured = run.config.on("cpu_offloading")
    return False if configured is None and run.active.offload is False else configured


def turns_offload_down(run: Run) -> bool:
    return run.active.offload is True and not run.does_not_fit


def _narrower_tried(run: Run) -> bool | None:
    """Nobody can say, unless the guide still has something narrower, or memory has room."""
    if run.config.memory_tight is False:
        return False
    return None if choose_recompute(run).granularity != "full" else True


def _gathers_wide(run: Run) -> bool | None:
    allowed = run.config.delayed_scaling or (run.config.running_bits or 0) > 8
    gathered = run.config.on("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    return True if allowed or gathered is False else None


def _cpu_steps(run: Run) -> bool:
    """That the CPU steps the optimizer is configured, or seen by its copies."""
    asked = run.config.on(OPTIMIZER_OFFLOAD)
    return bool(run.seen_ns("host_overhead", ("cpu_optimizer",))) if asked is None else asked


def _te_layers(run: Run) -> bool | None:
    kind = run.config.first("transformer_impl")
    return None if kind is None else kind == "transformer_engine"


def _engine(run: Run) -> bool | None:
    """Transformer Engine, by the layers, else by its release."""
    layers = _te_layers(run)
    return layers if layers is not None else bool(run.config.version_text("te")) or None


# ---- parallel sizes ----


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


def _cp_divides_heads(run: Run) -> bool | None:
    heads, cp = _heads(run), run.config.cp
    return None if heads is None or cp is None else heads % (cp * (run.config.tp or 1)) == 0


def _deeper_fits(run: Run) -> bool | None:
    known = run.config.positive("num_layers") is not None and run.config.pp is not None
    return next(deeper(run), None) is not None if known else None


def _reads_from_host(run: Run) -> bool | None:
    """Whether weights or state lie on the host: by what copies cost, else by what is configured."""
    if (seen := run.seen_ns("memory", ("host_resident",))) is not None:
        return seen > 0
    told = [run.config.on(knob) for knob in ("cpu_offloading", OPTIMIZER_OFFLOAD)]
    return True if True in told else False if run.settings.by_knob else None


def _out_of_room(run: Run) -> bool | None:
    """Whether memory is too small and not only in pieces: as said, by the estimate, or by an error."""
    if run.config.memory_tight or too_large(run) is not None:
        return True
    if run.active.out_of_memory or (run.log is not None and run.log.out_of_memory):
        return segments_suffice(run) is not True
    return False if run.does_not_fit else is_tight(run)


def _recompute_left(run: Run) -> bool | None:
    """Whether selective recompute has something left; None where nobody knows what it would choose."""
    choice = choose_recompute(run)
    return choice.granularity == "selective" and bool({*choice.modules} - recomputed_now(run))


def experts_cut(run: Run) -> bool:
    return run.active.moe is not False and (run.config.expert_tensor_size or 1) > 1


# ---- what runs already, and what forbids a change ----


def _dp_overlapped(run: Run) -> bool | None:
    """By what compute hides, else by the configuration."""
    switches = (run.config.overlap(f"overlap_{name}") for name in ("grad_reduce", "param_gather"))
    return run.observed.dp_overlapped or all_of(*switches)


def _amd(run: Run) -> bool:
    return "rocm" in (run.observed.in_use or ()) or (run.gpu or "").startswith("MI")


def _rollouts_share(run: Run) -> bool | None:
    """Whether an engine of rollouts shares the GPU: by names in the trace, the configuration, or the log."""
    seen = "rollout_engine" in (run.observed.in_use or ())
    told = run.log is not None and any(one.id == "segments-beside-pool" for one in run.log.messages)
    return True if seen or told else run.config.on("launcher.colocated")


# ---- precision ----


def _tensor_cores(run: Run, since: tuple[int, int], seen: bool | None) -> bool | None:
    """By the GPU's compute capability, else as its kernels show."""
    return seen if run.active.capability is None else run.active.capability >= since


FIX_FACTS: Final[Mapping[str, Fact]] = {
    **GUIDE_FACTS,
    "precision_runs": Fact(lambda run: run.precision),
    "several_gpus": Fact(
        lambda run: run.observed.several_gpus if run.config.world is None else run.config.world > 1
    ),
    # dispatchers
    "guided_backend": Fact(backend_to_set),
    "guided_by": Fact(lambda run: choose_dispatcher(run).rule),
    "guide_asks": Fact(lambda run: choose_dispatcher(run).asks),
    "sm_backend_cure": Fact(_sm_backend_cure),
    "dispatcher_sms": Fact(
        lambda run: run.config.positive(SHARED_SM_KNOB, f"moe_{run.active.dispatcher}_num_sms")
    ),
    "unknown_topology": Fact(_unknown_topology),
    "leaves_domain": Fact(_leaves_domain),
    "ends_waiting": Fact(_ends_waiting),
    # memory
    "layer_offload": Fact(layer_offload),
    "room_given": Fact(lambda run: (run.config.memory_tight is False) or None),
    "memory_short": Fact(is_tight),
    "room_to_halve": Fact(has_room_to_halve),
    "out_of_room": Fact(_out_of_room),
    "reads_from_host": Fact(_reads_from_host),
    "recompute_left": Fact(_recompute_left),
    "narrower_tried": Fact(_narrower_tried),
    "replays": Fact(replays),
    "moe_captured": Fact(lambda run: captured_alone(run, "moe")),
    "preprocess_captured": Fact(lambda run: captured_alone(run, "moe_preprocess")),
    "te_layers": Fact(_te_layers),
    "gathers_wide": Fact(_gathers_wide),
    "cpu_steps": Fact(_cpu_steps),
    "state_shared": Fact(lambda run: run.active.dp_active or (run.config.dp or 1) > 1 or None),
    "grouped_weights": Fact(
        lambda run: run.config.on("moe_single_grouped_weight", "moe_single_grouped_bias")
    ),
    # overlap
    "wgrad_delayed": Fact(lambda run: run.config.overlap("delay_wgrad_compute")),
    "has_shared_experts": Fact(has_shared_experts),
    "shared_recomputed": Fact(
        lambda run: None if run.active.recompute_modules is None else "shared_experts" in recomputed_now(run)
    ),
    "engine": Fact(_engine),
    "dp_overlapped": Fact(_dp_overlapped),
    "queues": Fact(lambda run: run.config.first("env.CUDA_DEVICE_MAX_CONNECTIONS")),
    "queues_wanted": Fact(lambda run: str(connections(run))),
    # parallel sizes
    "stages_are_even": Fact(stages_are_even),
    "cp_cut": Fact(lambda run: run.active.cp_active if run.config.cp is None else run.config.cp > 1),
    "next_exchange": Fact(lambda run: exchange(run)[0]),
    "exchange_runs": Fact(lambda run: run.config.first("cp_comm_type")),
    "cp_divides_heads": Fact(_cp_divides_heads),
    "cp_can_widen": Fact(lambda run: wider_cp(run) is not None),
    "wider_ep": Fact(wider_ep),
    "wider_ep_divides": Fact(lambda run: experts_divide(run, wider_ep(run) or 1)),
    "deeper_fits": Fact(_deeper_fits),
    "batch_divides": Fact(batch_divides),
    # precision
    "capability_major": Fact(lambda run: run.config.capability and run.config.capability[0]),
    "tf32_cores": Fact(lambda run: _tensor_cores(run, TF32_SINCE, None)),
    "half_cores": Fact(lambda run: _tensor_cores(run, HALF_SINCE, run.active.tensor_cores)),
    # what runs already, and what forbids a change
    "uses": Fact(lambda run: frozenset(run.observed.in_use or ())),
    "amd": Fact(_amd),
    "rollouts_share": Fact(_rollouts_share),
    "retries": Fact(lambda run: run.observed.allocator_retries),
    # the host
    "numa_known": Fact(lambda run: run.config.hardware_class not in (None, "other") or None),
    "collects": Fact(lambda run: bool(run.seen_ns("host_overhead", ("gc",)))),
    "collections_show": Fact(
        lambda run: (
            bool(run.seen_ns("host_overhead", ("gc",))) or (None if run.active.recorder is None else False)
        )
    ),
    "data_waited_for": Fact(
        lambda run: None if (ns := run.seen_ns("host_overhead", ("data",))) is None else bool(ns)
    ),
}
