"""Which dispatcher moves the tokens (COM-2, MEM-5), and how its kernels are set up (COM-3, COM-11, CMP-5)."""

from collections.abc import Mapping
from dataclasses import replace
from math import gcd
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.needs import WAITING, mostly_moving, needed
from heuristics.fixes.precondition import Precondition, holds, is_not
from heuristics.guides.dispatcher import (
    DEEPEP_SMS,
    DEEPEP_SMS_B200_DSV3,
    HYBRIDEP_SMS,
    HYBRIDEP_SMS_HARNESS,
    SHARED_SM_KNOB,
    backend_variables,
    choose_dispatcher,
    sm_knob,
)
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit
from traces.settings.settings import Value
from traces.spelling import chosen

FEW: Final = Limit(
    16,
    "SMs",
    "low end of the guide's sweep for HybridEP (Megatron-Bridge skill perf-moe-dispatcher-selection)",
)
_ADDED_IN: Final = {"deepep": "0.12.0", "hybridep": "0.16.0"}
_FLEX: Final = ("deepep", "hybridep", "ncclep")
_SWEEP: Final = {
    "deepep": (DEEPEP_SMS_B200_DSV3, DEEPEP_SMS),
    "hybridep": (HYBRIDEP_SMS_HARNESS, HYBRIDEP_SMS),
}
_TELLING: Final = "--gpu-model, --ep, --tp, --routing, --core-version, --bridge-version, --container"
_TYPE: Final = "moe_token_dispatcher_type"
_BACKEND: Final = "moe_flex_dispatcher_backend"


def backend_to_set(run: Run) -> str:
    """The guide's first; where it has no winner, its first candidate that does not run already."""
    return choose_dispatcher(run).first or _others(run)[0]


def _others(run: Run) -> list[str]:
    return [backend for backend in choose_dispatcher(run).candidates if backend != run.active.dispatcher]


def recommended(run: Run) -> Change:
    """The guide's dispatcher."""
    return _set(run, backend_to_set(run))


def arms(run: Run) -> Mapping[str, Change]:
    """Where the guide has no winner: each of its candidates that does not run already, to be measured."""
    others = () if choose_dispatcher(run).first else _others(run)
    return {backend: _set(run, backend) for backend in others} if len(others) > 1 else {}


def _set(run: Run, backend: str) -> Change:
    """Type and backend together: the backend alone does nothing. Flex backends want fp32 probabilities."""
    if backend in ("alltoall", "allgather"):
        none = ("--moe_flex_dispatcher_backend None",) if backend == "alltoall" else ()
        typed: dict[str, Value] = {_TYPE: backend}
        return Change(megatron_lm=typed, megatron_bridge={**typed, _BACKEND: None}, harness=none)
    by_switch = backend == "deepep" and run.config.core_before("0.16.0")
    return Change(
        {
            _TYPE: "flex",
            **({"moe_enable_deepep": True} if by_switch else {_BACKEND: backend}),
            "moe_router_dtype": "fp32",
            **({"moe_shared_expert_overlap": False} if run.config.may_overlap_shared else {}),
            **backend_variables(run, backend),
        },
        harness=(f"--moe_flex_dispatcher_backend {backend}",),
        since=_ADDED_IN.get(backend, ""),
    )


def not_in_use(run: Run) -> tuple[Precondition, ...]:
    """Another backend than the guide's runs."""
    choice, backend, now = choose_dispatcher(run), backend_to_set(run), run.active.dispatcher
    text = f"{backend} (rule {choice.rule} of the dispatcher guide) is not in use yet"
    fact = None if now == "unknown" else now != backend
    return (holds(text, fact, ", ".join(choice.asks), cure("graphs", run.active.recorder)),)


def allowed(run: Run) -> tuple[Precondition, ...]:
    """The backend is better than one that is tuned, comes in the guide's order, is installed and allowed."""
    choice, backend, now = choose_dispatcher(run), backend_to_set(run), run.active.dispatcher
    better = None if now == "unknown" else choice.first is not None or now not in _ADDED_IN
    needs = [holds("the guide names one backend, or no flex backend is in use yet", better, "COM-3")]
    for fix in choice.before:
        needs.append(holds(f"{fix} is done, which the dispatcher guide asks for first", False, fix))
    if backend in _ADDED_IN:
        package = True if now == backend else run.config.flex_package
        needs.append(holds(f"the package of {backend} can be imported", package, "--flex-package"))
        if run.config.on("fake_process_group"):
            needs.append(holds("process groups are not fake", False, "--fake-process-group left out"))
    needs += [
        is_not(f"this limit does not apply: {rule.text}", past_limit(rule, run.config), told_by=_TELLING)
        for rule in limits(backend)
    ]
    return tuple(needs)


# ---- for its memory ----


def _short_of_memory(run: Run) -> Run:
    """The run as the dispatcher guide is asked here: whoever pays for memory is short of it."""
    tight = run.config.memory_tight is not False
    return replace(run, given=replace(run.given, memory_tight=tight))


def for_memory(run: Run) -> Change:
    """The guide's dispatcher, where memory is short."""
    return recommended(_short_of_memory(run))


def arms_for_memory(run: Run) -> Mapping[str, Change]:
    """Candidates where memory is short."""
    return arms(_short_of_memory(run))


def flex_for_memory(run: Run) -> tuple[Precondition, ...]:
    """A flex backend in place of another kind, and what it needs; that ranks wait does not matter."""
    tight = _short_of_memory(run)
    text = f"the dispatcher guide names a flex backend here ({choose_dispatcher(tight).rule})"
    named = holds(text, backend_to_set(tight) in _FLEX, "--gpu-model, --ep and --stage")
    return (named, *needed("expert_parallel", tight), *not_in_use(tight), *allowed(tight))


# ---- its SMs ----


def sms(run: Run) -> Change:
    """One value beside the default; sweep around it. Without a backend, that of COM-2, else HybridEP's.

    Where HybridEP is told another NVLink domain than there is, that comes first, and alone.
    """
    default = "deepep" if run.config.core_before("0.16.0") else "hybridep"
    backends = (run.active.dispatcher, backend_to_set(run), default)
    backend = next(name for name in backends if name in _SWEEP)
    if run.config.right_topology is False:
        return Change(backend_variables(run, backend))
    now = run.config.positive(SHARED_SM_KNOB, f"moe_{backend}_num_sms")
    count = next(int(one.value) for one in _SWEEP[backend] if now != int(one.value))
    return Change({sm_knob(run, backend): count, **backend_variables(run, backend)}, by_release=True)


def tunable(run: Run) -> tuple[Precondition, ...]:
    """A flex backend that moves data, and a topology that is known."""
    now, chosen = run.active.dispatcher, backend_to_set(run)
    told = None if now == "unknown" else now in _SWEEP
    none_has_sms = told is False and chosen != now and chosen not in _SWEEP
    met_by = "moe_token_dispatcher_type flex" if none_has_sms else "COM-2"
    needs = [holds("DeepEP or HybridEP dispatches tokens", told, met_by)]
    if run.config.right_topology is not False:  # else its waiting is what the wrong topology makes
        needs += mostly_moving(run)
    if now == "hybridep":
        known = {"--ep": run.config.ep, "--nvlink-domain": run.config.nvlink_domain}
        missing = ", ".join(option for option, value in known.items() if value is None)
        needs.append(holds("EP and NVLink domain are known", None if missing else True, told_by=missing))
    return tuple(needs)


def fewer_sms(run: Run) -> Change:
    """The low end of the sweep, by the knob of the release; HybridEP's where the backend is unknown."""
    backend = "deepep" if run.active.dispatcher == "deepep" else "hybridep"
    return Change({sm_knob(run, backend): int(FEW.value)}, by_release=True)


def many_sms(run: Run) -> tuple[Precondition, ...]:
    """More SMs than the low end."""
    now = run.config.positive(SHARED_SM_KNOB, f"moe_{run.active.dispatcher}_num_sms")
    told = f"{SHARED_SM_KNOB} of the configuration"
    fact = None if now is None else now > FEW.value
    return (holds(f"the dispatcher takes more than {FEW.value:.0f} SMs", fact, told_by=told),)


# ---- whom it serves ----


def inside_domain(run: Run) -> Change:
    """The largest EP that divides the present one and fits the NVLink domain (N where either is unknown).

    Each expert is whole on its rank.
    """
    ep, domain = run.config.ep, run.config.nvlink_domain
    fits = "N" if ep is None or domain is None else max(gcd(ep, size) for size in range(1, domain + 1))
    return Change({"expert_model_parallel_size": fits, "expert_tensor_parallel_size": 1})


def leaves_domain(run: Run) -> tuple[Precondition, ...]:
    """Where ETP is unknown, an EP that fits stays inside unless kernels are seen to cross nodes."""
    spans, ep, domain = run.config.spans_domain, run.config.ep, run.config.nvlink_domain
    fits = ep is not None and domain is not None and ep <= domain
    inside = run.active.internode is False or (fits and not run.active.internode)
    fact = spans if spans is not None else False if inside else None
    return (
        holds("EP x ETP is more than one NVLink domain holds", fact, told_by="--ep, --etp, --nvlink-domain"),
    )


def _is_uneven(run: Run) -> bool:
    return run.active.late_cause == "routing_imbalance"


def spread_experts(run: Run) -> tuple[Precondition, ...]:
    """Experts over ranks; work that differs by rank shows it by itself."""
    return () if _is_uneven(run) else needed("expert_parallel", run)


def waits_for_routing(run: Run) -> tuple[Precondition, ...]:
    """Waiting dominates, which has to be seen: the change is of what is learned."""
    waiting = run.active.a2a_waiting_frac
    text = (
        f"waiting is more than {chosen(WAITING.value)} of the expert all-to-all, or routing makes a rank late"
    )
    fact = _is_uneven(run) or (None if waiting is None else waiting > WAITING.value)
    return (holds(text, fact, told_by="record several ranks of a group", blocks=True),)
