"""COM-2: another token dispatcher for expert all-to-all.

Changes NCCL send and receive, or one flex backend, for the backend that NVIDIA's dispatcher guide names for
this run. Helps where expert all-to-all is exposed, most where EP is large or leaves a node; DeepEP and
HybridEP also save the global permute. Forbidden by GPU, version and routing, backend by backend, and where
the package is not installed. No cure where most of the time is waiting for a late rank.
"""

from collections.abc import Mapping
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import expert_parallel, holds, is_not, mostly_moving
from heuristics.guides.dispatcher import DispatcherChoice, choose_dispatcher
from heuristics.guides.dispatcher_extras import backend_extras
from heuristics.guides.facts import EP_KINDS
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run
from traces.cures import cure
from traces.settings.settings import Value

_ADDED_IN: Final = {"deepep": "0.12.0", "hybridep": "0.16.0"}
_WITHOUT_BACKEND: Final = ("alltoall", "allgather")
_TELLING: Final = "--gpu-model, --ep, --tp, --routing, --core-version, --bridge-version, --container"
_TYPE: Final = "moe_token_dispatcher_type"
_BACKEND: Final = "moe_flex_dispatcher_backend"


def backend_to_set(run: Run) -> str:
    """The guide's first; where it has no winner, its first candidate that does not run already."""
    choice = choose_dispatcher(run)
    others = [backend for backend in choice.candidates if backend != run.active.dispatcher]
    return choice.first or others[0]


def arms(run: Run) -> Mapping[str, Change]:
    """Where the guide has no winner: each of its candidates that does not run already, to be measured."""
    choice = choose_dispatcher(run)
    others = [backend for backend in choice.candidates if backend != run.active.dispatcher]
    return {} if choice.first or len(others) < 2 else {backend: change(run, backend) for backend in others}


def change(run: Run, backend: str = "") -> Change:
    """Type and backend together: the backend alone does nothing. Flex backends want fp32 probabilities."""
    backend = backend or backend_to_set(run)
    if backend in _WITHOUT_BACKEND:
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
            **topology(run, backend),
        },
        harness=(f"--moe_flex_dispatcher_backend {backend}",),
        since=_ADDED_IN.get(backend, ""),
    )


def topology(run: Run, backend: str) -> Mapping[str, Value]:
    """What a backend has to be told of the machine."""
    told = (extra.partition("=") for extra in backend_extras(run, backend) if "=" in extra)
    return {f"env.{name}": value for name, _, value in told}


def advice(run: Run) -> tuple[Precondition, ...]:
    """A backend other than the one that runs, allowed here, installed, and moving data to speed up."""
    choice, backend, now = choose_dispatcher(run), backend_to_set(run), run.active.dispatcher
    needs = [
        expert_parallel(run),
        holds(
            f"{backend} (rule {choice.rule} of the dispatcher guide) is not in use yet",
            None if now == "unknown" else now != backend,
            ", ".join(choice.asks),
            cure("graphs", run.active.recorder),
        ),
        mostly_moving(run),
        holds(
            "the guide names one backend, or no flex backend is in use yet",
            _better_than_tuned(choice, now),
            "COM-3",
        ),
        *(
            holds(f"{fix} is done, which the dispatcher guide asks for first", False, fix)
            for fix in choice.before
        ),
    ]
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


def _better_than_tuned(choice: DispatcherChoice, now: str) -> bool | None:
    """Where the guide has no winner, a flex backend that runs is tuned before another is tried."""
    return None if now == "unknown" else choice.first is not None or now not in _ADDED_IN


FIX: Final = Fix(
    id="COM-2",
    wall="communication",
    title="Use the token dispatcher that the guide recommends",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "moe_flex_dispatcher_backend since Megatron-Core 0.16; 0.12 to 0.15 have DeepEP only, as "
        "--moe-enable-deepep. Megatron-Bridge's apply_flex_dispatcher_backend(cfg.model, ...) sets the same "
        "and falls back to alltoall on a GPU it does not know (0.3 leaves the configuration as it is, "
        "without a word)"
    ),
    gains=(
        Gain(
            "829.93 to 943.56 TFLOPS/GPU from DeepEP to HybridEP: DeepSeek-V3, 256 GB200, MXFP8, EP32, PP8",
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8",
        ),
        Gain(
            "alltoall to HybridEP on GB200, EP64: dispatch 930 to 675 us, combine 827 to 744 us",
            "per a digest of arXiv 2603.07685",
        ),
        Gain(
            "alltoall to DeepEP on H100, EP64: about 8.7 to 9.2 ms down to 4.4 to 4.6 ms",
            "per a digest of arXiv 2603.07685",
        ),
    ),
    side_effects=(
        "shared-expert overlap goes off",
        "router probabilities become fp32",
        (
            "ranks with unequal token counts need moe_hybridep_pad_uneven_dispatch_inputs with HybridEP, "
            "which adds a sync"
        ),
        "flex cannot be combined with --fake-process-group",
    ),
    excludes=("MEM-5", "COM-8"),
    verify=(
        "kernels of the new backend (deep_ep::, hybrid_ep::) in place of NCCL SendRecv in MoE layers; same "
        "routing mode, layout, graphs and container as before"
    ),
    sources=(
        "Megatron-Bridge skill perf-moe-dispatcher-selection",
        "Megatron-Bridge, src/megatron/bridge/training/flex_dispatcher_backend.py at 067f987d and v0.3.1",
        (
            "Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py and transformer_config.py at "
            "d98e8a64"
        ),
    ),
    changes=lambda run: ("faster_dispatcher",),
    arms=arms,
)
