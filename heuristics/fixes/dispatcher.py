"""Which dispatcher moves the tokens (COM-2, MEM-5), and how its kernels are set up (COM-3, COM-11,
CMP-5).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from heuristics.config.logic import negated
from heuristics.config.sizes import divisors
from heuristics.facts.dictionary import fact
from heuristics.fixes.change import Change
from heuristics.fixes.circumstances import SM_BACKENDS, guided_backend, other_backends
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Needs
from heuristics.guides.dispatcher import (
    SHARED_SM_KNOB,
    backend_variables,
    sm_knob,
)
from heuristics.recipes import RECIPES
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run
from traces.settings.settings import Values

_TUNED: Final = {
    "deepep": RECIPES["deepep_sms_b200_dsv3"].whole,
    "hybridep": RECIPES["hybridep_sms_harness"].whole,
}
"""What guides set in place of the default. One value, so that nobody who follows is sent back."""
_TYPE: Final = "moe_token_dispatcher_type"
_BACKEND: Final = "moe_flex_dispatcher_backend"
_SWITCH: Final = "moe_enable_deepep"


def recommended(run: Run) -> Change:
    return set_to(run, guided_backend(run))


def arms(run: Run) -> Mapping[str, Change]:
    """Where the guide has no winner: each of its candidates that does not run already, to be
    measured.
    """
    backends = () if run.tells("dispatcher_guide").first else other_backends(run)
    if len(backends) > 1:
        return {backend: set_to(run, backend) for backend in backends}
    return {}


def set_to(run: Run, backend: str) -> Change:
    """Type and backend together: the backend alone does nothing. Flex backends want fp32
    probabilities.
    """
    off: Values = {_SWITCH: False} if backend != "deepep" and run.config.on(_SWITCH) else {}
    if backend in ("alltoall", "allgather"):
        none = ("--moe_flex_dispatcher_backend None",) if backend == "alltoall" else ()
        typed = {_TYPE: backend, **off}
        return Change(megatron_lm=typed, megatron_bridge={**typed, _BACKEND: None}, harness=none)
    by_switch = backend == "deepep" and run.config.core_before("0.16.0")
    return Change(
        {
            _TYPE: "flex",
            **off,
            **({_SWITCH: True} if by_switch else {_BACKEND: backend}),
            "moe_router_dtype": "fp32",
            **({"moe_shared_expert_overlap": False} if _ends_shared_overlap(run) else {}),
            **backend_variables(run, backend),
        },
        harness=(f"--moe_flex_dispatcher_backend {backend}",),
        since={"deepep": "0.12.0", "hybridep": "0.16.0"}.get(backend, ""),
    )


def _ends_shared_overlap(run: Run) -> bool:
    """Flex runs beside it from Megatron-Core 0.18 on; Bridge's helper turns it off in every
    release.
    """
    beside = (
        run.config.before("core", "0.18.0") is False and run.config.framework != "megatron_bridge"
    )
    return run.config.may_overlap_shared and not beside


def allowed(run: Run) -> Needs:
    """The backend is better than one that is tuned, comes in the guide's order, is installed and
    allowed.
    """
    choice, backend, now = run.tells("dispatcher_guide"), guided_backend(run), run.active.dispatcher
    better = None if now == "unknown" else choice.first is not None or now not in SM_BACKENDS
    needs = [*needed("better_backend", run, better)]
    for fix in choice.before:
        needs += (replace(need, order=True) for need in needed("done_before", run, False, fix=fix))
    if backend in SM_BACKENDS:
        package = True if now == backend else run.config.flex_package
        needs += [*needed("package", run, package), *needed("real_groups", run)]
    for rule in limits(backend):
        needs += needed(
            "not_past_limit", run, negated(past_limit(rule, run.config)), limit=rule.text
        )
    return tuple(needs)


# ---- for its memory ----


def _short_of_memory(run: Run) -> Run:
    """The run as the dispatcher guide is asked here: whoever pays for memory is short of it."""
    return replace(run, given=replace(run.given, memory_tight=run.config.memory_tight is not False))


def for_memory(run: Run) -> Change:
    return recommended(_short_of_memory(run))


def arms_for_memory(run: Run) -> Mapping[str, Change]:
    return arms(_short_of_memory(run))


def flex_for_memory(run: Run) -> Needs:
    """A flex backend in place of another kind, and what it needs; that ranks wait does not
    matter.
    """
    tight, names = _short_of_memory(run), ("flex_guided", "expert_parallel", "guided_backend_new")
    return (*(need for name in names for need in needed(name, tight)), *allowed(tight))


# ---- its SMs ----


def sms(run: Run) -> Change:
    """The guides' value beside the default; sweep around it. Without a backend COM-2's, else
    HybridEP's.

    Where HybridEP is told another NVLink domain than there is, that comes first, and alone.
    """
    backend = _tuned_backend(run)
    variables = {**backend_variables(run, backend)}
    if run.config.right_topology is False:
        return Change(variables)
    return Change({sm_knob(run, backend): _TUNED[backend], **variables}, by_release=True)


def _tuned_backend(run: Run) -> str:
    default = "deepep" if run.config.core_before("0.16.0") else "hybridep"
    backends = run.active.dispatcher, guided_backend(run), default
    return next(backend for backend in backends if backend in _TUNED)


@fact
def tuned_sms(run: Run) -> int:
    """The SMs that the guides give the dispatcher."""
    return _TUNED[_tuned_backend(run)]


@fact
def sms_are_tuned(run: Run) -> bool:
    """Whether it has these, and is told of the machine what it asks."""
    backend = _tuned_backend(run)
    same = all(
        run.config.first(name) == value for name, value in backend_variables(run, backend).items()
    )
    return same and run.config.positive(SHARED_SM_KNOB, f"moe_{backend}_num_sms") == _TUNED[backend]


def fewer_sms(run: Run) -> Change:
    """The low end of the sweep, by the knob of the release; HybridEP's where the backend is
    unknown.
    """
    backend = "deepep" if run.active.dispatcher == "deepep" else "hybridep"
    return Change({sm_knob(run, backend): RECIPES["hybridep_sms"].whole}, by_release=True)


# ---- whom it serves ----


def inside_domain(run: Run) -> Change:
    """The largest EP that divides the present one and fits the NVLink domain (N where either is
    unknown).

    Each expert is whole on its rank.
    """
    ep, domain = run.config.ep, run.config.nvlink_domain
    fits = "N" if ep is None or domain is None else divisors(ep, domain)[-1]
    return Change({"expert_model_parallel_size": fits, "expert_tensor_parallel_size": 1})
