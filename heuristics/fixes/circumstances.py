"""What needs of fixes ask of a run beside what guides do; each is None where unknown."""

from functools import partial
from math import gcd
from operator import methodcaller
from typing import Final

from packaging.version import Version

from heuristics.config.logic import all_of
from heuristics.config.sizes import divisors
from heuristics.config.view import Config
from heuristics.facts.configuration import version
from heuristics.facts.dictionary import enter, fact
from heuristics.guides.dispatcher import SHARED_SM_KNOB, choose_dispatcher
from heuristics.guides.parallel import connections
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
from traces.limits import Limit
from traces.settings.values import fullest_rank

SM_BACKENDS: Final = ("deepep", "hybridep")
ROUTER_KERNELS: Final = Limit(
    31,
    "kernels",
    "Megatron-LM at 1d9edcf8, DeepSeek-V3 GB200 guide: what the router fusion leaves of 72",
)
SMALL_EP: Final = Limit(
    4,
    "ranks",
    "Megatron-Bridge, docs/training/communication-overlap.md: not with alltoall and EP <= 4 on <= "
    "2 nodes",
)

enter("dispatcher_guide", choose_dispatcher)
enter("recompute_guide", choose_recompute)
_SEEN: Final = {
    "gc": "host_overhead",
    "data": "host_overhead",
    "cpu_optimizer": "host_overhead",
    "host_resident": "memory",
}
"""Kinds of which tables ask what they cost, and their walls."""


for _kind, _wall in _SEEN.items():
    enter(f"{_kind}_ns", methodcaller("seen_ns", _wall, (_kind,)), Run)


@fact
def host_kinds(run: Run) -> frozenset[str]:
    """Kinds of host overhead, where it is told apart by kind."""
    return frozenset(run.cost_by_kind_ns.get("host_overhead") or ())


# ---- dispatchers ----


@fact
def guided_backend(run: Run) -> str:
    """The guide's first; where it has no winner, its first candidate that does not run already."""
    return run.tells("dispatcher_guide").first or other_backends(run)[0]


def other_backends(run: Run) -> list[str]:
    return [
        backend
        for backend in run.tells("dispatcher_guide").candidates
        if backend != run.active.dispatcher
    ]


@fact
def ends_waiting(run: Run) -> str:
    """What makes ranks wait less: where the late rank is known its repair, else even routing."""
    if run.late:
        return next(iter(run.repairs), say("fixes.repair-of-late-rank"))
    return "COM-11"


@fact
def dispatcher_sms(run: Run) -> int | None:
    """SMs that the dispatcher is given."""
    return run.config.positive(SHARED_SM_KNOB, f"moe_{run.active.dispatcher}_num_sms")


# ---- parallel sizes ----


@fact
def stages_are_even(run: Run) -> bool:
    """Whether a rank has no more to compute, by the split as it is, than one of the layout we name.

    Not where it would add the virtual stages that there are none of: they shorten warm-up and
    cool-down.
    """
    now, named = run.config.pp_layout or present_layout(run), even_layout(run)
    if now is None or named is None or run.config.pp is None or named[1] > (run.config.vpp or 1):
        return False
    own, best = fullest_rank(now, run.config.pp), fullest_rank(named[0], run.config.pp)
    return own is not None and best is not None and own <= best


@fact
def next_levels(run: Run) -> tuple[int, ...]:
    """The ranks of its levels, where it has several."""
    return exchange(run)[1]


# hardware queues that the run wants with EP overlap
enter("queues_with_overlap", partial(connections, ep_overlap=True), Run)


def exchange(run: Run) -> tuple[str, tuple[int, ...]]:
    """The kind to try next, and the ranks of its levels: the ring, then what follows it, then
    nothing.
    """
    now = run.config.first("cp_comm_type")
    if now in ("a2a", "a2a+p2p"):
        return str(now), ()
    if now != "p2p" or run.config.cp is None:
        return "p2p", ()
    inner = _inside(run, run.config.cp)
    outer = run.config.cp // inner
    if inner > 1 and outer > 1:
        return "a2a+p2p", (inner, outer)
    return "a2a", ()


def _inside(run: Run, cp: int) -> int:
    """Largest part of CP that divides CP and the heads, and that one NVLink domain holds."""
    config, domain = run.config, run.config.nvlink_domain or cp
    heads = config.positive("num_query_groups") or config.positive("num_attention_heads") or cp
    heads //= config.tp if config.tp and not heads % config.tp else 1
    return divisors(gcd(cp, heads), domain)[-1]


@fact
def deeper_fits(run: Run) -> bool | None:
    """Whether a layout of more stages fits the layers."""
    if run.config.positive("num_layers") is not None and run.config.pp is not None:
        return next(deeper(run), None) is not None
    return None


@fact
def next_exchange(run: Run) -> str:
    """The exchange of context parallelism to try next."""
    return exchange(run)[0]


enter("exchange_runs", methodcaller("first", "cp_comm_type"), Config)


@fact
def wider_ep_divides(run: Run) -> bool | None:
    """Whether experts divide by the next EP."""
    return experts_divide(run, wider_ep(run) or 1)


# ---- what runs already, and what forbids a change ----


@fact
def dp_overlapped(run: Run) -> bool | None:
    """By what compute hides, else by the configuration."""
    switches = "overlap_grad_reduce", "overlap_param_gather"
    return run.observed.dp_overlapped or all_of(*map(run.config.overlap, switches))


@fact
def amd(run: Run) -> bool:
    """Whether its GPU is AMD's."""
    return "rocm" in (run.observed.in_use or ()) or (run.gpu or "").startswith("MI")


# whether weight gradients are delayed, by any of the switches; hardware queues as they are set
enter("wgrad_delayed", methodcaller("overlap", "delay_wgrad_compute"), Config)
enter("queues", methodcaller("first", "env.CUDA_DEVICE_MAX_CONNECTIONS"), Config)


@fact
def queues_wanted(run: Run) -> str:
    """As many as the run's overlaps want."""
    return str(connections(run))


@fact
def uses(run: Run) -> frozenset[str]:
    """What names in the trace show in use."""
    return frozenset(run.observed.in_use or ())


# ---- precision ----


@fact
def capability_seen(run: Run) -> Version | None:
    """The compute capability of the GPU that ran."""
    return version(run.active.capability)
