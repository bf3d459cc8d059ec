"""NVIDIA's dispatcher guide as an ordered table, in its two editions; the first row that holds fires.

`seed`: skill perf-moe-dispatcher-selection of Megatron-Bridge up to v0.6.0. `main-2026-08`: the same skill on
main since commit 302976773, which asks for a measurement where the older one had a winner.
The guides order nothing; the order here is ours: what cannot be or must come first, the narrower row before
the wider (family and GPU, then EP size, then GPU), what no guide names last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.guides.table import When
from heuristics.run.given import Guidance
from traces.limits import Limit

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

SEED_SKILL: Final = "Megatron-Bridge v0.6.0, skill nemo-mbridge-perf-moe-dispatcher-selection"
MAIN_SKILL: Final = "Megatron-Bridge 067f987d, skill nemo-mbridge-perf-moe-dispatcher-selection"

ALLTOALL, DEEPEP, HYBRIDEP = "alltoall", "deepep", "hybridep"
FLEX: Final = (DEEPEP, HYBRIDEP)


@dataclass(frozen=True, slots=True)
class DispatcherRule:
    """One row: under `when`, try `first` (None: no winner, measure), out of `candidates`."""

    id: str
    when: When
    first: str | None
    candidates: tuple[str, ...]
    note: str
    extras: tuple[str, ...] = ()


_PACKAGE_MISSING: Final = DispatcherRule(
    "package-missing",
    {"package": (False,)},
    ALLTOALL,
    (ALLTOALL,),
    "the package of DeepEP or HybridEP cannot be imported: a limit of the environment, not a timing",
)
_BRING_UP_VLM: Final = DispatcherRule(
    "vlm-bring-up",
    {"stage": ("bring_up",), "hardware": ("nvl72",), "family": ("vlm",)},
    ALLTOALL,
    (ALLTOALL, HYBRIDEP),
    "start simple; hybridep once the run is stable on real vision data, since mock data is no proxy",
)
_BRING_UP: Final = DispatcherRule(
    "bring-up",
    {"stage": ("bring_up",)},
    ALLTOALL,
    (ALLTOALL,),
    "correctness first: the easiest path to debug",
)
_NEXT_LOW_PRECISION: Final = DispatcherRule(
    "qwen3-next-low-precision",
    {"hardware": ("nvl72",), "family": ("qwen3_next",), "low_precision": (True,)},
    HYBRIDEP,
    (HYBRIDEP, ALLTOALL),
    "stronger in FP8; pipeline layout and grouped GEMM can matter almost as much as the dispatcher",
)
_MEMORY_TIGHT: Final = DispatcherRule(
    "memory-tight",
    {"hardware": ("nvl72",), "memory_tight": (True,)},
    HYBRIDEP,
    (HYBRIDEP, ALLTOALL),
    "head-room justifies hybridep even where it saves little time; layout, grouped GEMM matter as much",
)
_NEXT_BF16: Final = DispatcherRule(
    "qwen3-next-bf16",
    {"hardware": ("nvl72",), "family": ("qwen3_next",)},
    None,
    (ALLTOALL, HYBRIDEP),
    "a close race in BF16: measure, do not assume",
)
_DSV3_NVL72: Final = DispatcherRule(
    "dsv3-nvl72",
    {"hardware": ("nvl72",), "family": ("dsv3",)},
    HYBRIDEP,
    (HYBRIDEP, DEEPEP, ALLTOALL),
    "the choice matters more as EP and PP grow",
)
_QWEN235_NVL72: Final = DispatcherRule(
    "qwen3-235b-nvl72",
    {"hardware": ("nvl72",), "family": ("qwen3_235b",)},
    HYBRIDEP,
    (HYBRIDEP, DEEPEP, ALLTOALL),
    "alltoall to bring it up, hybridep for the best steady state: modestly faster, more memory head-room",
)
_VLM_NVL72: Final = DispatcherRule(
    "vlm-nvl72",
    {"hardware": ("nvl72",), "family": ("vlm",)},
    HYBRIDEP,
    (HYBRIDEP, ALLTOALL),
    "test it against alltoall on real vision data: vision feels memory and host overhead alike",
)
_VLM: Final = DispatcherRule(
    "vlm",
    {"family": ("vlm",)},
    ALLTOALL,
    (ALLTOALL, DEEPEP),
    "start simple; add one backend once it is stable",
)
_UNLISTED_GPU: Final = DispatcherRule(
    "unlisted-gpu",
    {"hardware": ("ampere", "other")},
    ALLTOALL,
    (ALLTOALL, DEEPEP),
    "no guide has a measurement on this GPU",
)
_UNKNOWN_GPU: Final = DispatcherRule(
    "unknown-gpu", {}, ALLTOALL, (ALLTOALL,), "the GPU is unknown: correctness first, one flex backend later"
)

_EIGHT: Final = ("hopper", "blackwell_nvl8")

SEED_RULES: Final = (
    _PACKAGE_MISSING,
    _BRING_UP_VLM,
    _BRING_UP,
    _NEXT_LOW_PRECISION,
    _MEMORY_TIGHT,
    DispatcherRule(
        "small-ep",
        {"ep": ("small",), "crosses": (False,)},
        ALLTOALL,
        (ALLTOALL, DEEPEP),
        "second-order: at small EP the dispatcher is rarely what matters; deepep is an option",
    ),
    _NEXT_BF16,
    _DSV3_NVL72,
    DispatcherRule(
        "dsv3-hopper",
        {"hardware": ("hopper",), "family": ("dsv3",)},
        DEEPEP,
        (DEEPEP, ALLTOALL),
        "the choice matters more as EP and PP grow",
    ),
    _QWEN235_NVL72,
    DispatcherRule(
        "qwen3-235b-hopper",
        {"hardware": ("hopper",), "family": ("qwen3_235b",)},
        DEEPEP,
        (DEEPEP, ALLTOALL),
        "the common best path of Qwen3 235B on H100",
    ),
    DispatcherRule(
        "qwen3-30b",
        {"hardware": _EIGHT, "family": ("qwen3_30b",)},
        DEEPEP,
        (DEEPEP, ALLTOALL),
        "smaller models still gain, but less in absolute time",
    ),
    _VLM_NVL72,
    _VLM,
    DispatcherRule(
        "large-ep-nvl72",
        {"hardware": ("nvl72",), "ep": ("large",)},
        HYBRIDEP,
        (HYBRIDEP, DEEPEP, ALLTOALL),
        "usually the best target for large EP on NVL72",
    ),
    DispatcherRule(
        "nvl72",
        {"hardware": ("nvl72",)},
        HYBRIDEP,
        (HYBRIDEP, DEEPEP, ALLTOALL),
        "fits dispatch within one NVLink domain and needs less memory",
    ),
    DispatcherRule(
        "medium-ep",
        {"hardware": ("hopper",), "ep": ("medium",)},
        DEEPEP,
        (DEEPEP, ALLTOALL),
        "often becomes worthwhile at medium EP",
    ),
    DispatcherRule(
        "hopper",
        {"hardware": ("hopper",)},
        DEEPEP,
        (DEEPEP, ALLTOALL),
        "strong default across nodes on Hopper",
    ),
    DispatcherRule(
        "blackwell-nvl8",
        {"hardware": ("blackwell_nvl8",)},
        DEEPEP,
        (DEEPEP, HYBRIDEP, ALLTOALL),
        "good first choice unless the platform has a HybridEP path of its own",
    ),
    _UNLISTED_GPU,
    _UNKNOWN_GPU,
)

MAIN_RULES: Final = (
    _PACKAGE_MISSING,
    _BRING_UP_VLM,
    _BRING_UP,
    _NEXT_LOW_PRECISION,
    _MEMORY_TIGHT,
    DispatcherRule(
        "small-ep",
        {"ep": ("small",), "crosses": (False,)},
        ALLTOALL,
        (ALLTOALL,),
        "second-order: at small EP the dispatcher may not be what matters",
    ),
    _NEXT_BF16,
    _DSV3_NVL72,
    _QWEN235_NVL72,
    DispatcherRule(
        "qwen3-235b-hopper",
        {"hardware": ("hopper",), "family": ("qwen3_235b",)},
        ALLTOALL,
        (ALLTOALL, DEEPEP, HYBRIDEP),
        "the recipe for 256 H100 keeps alltoall with EP overlap: do not replace it by a rule about hardware",
        extras=("--overlap-moe-expert-parallel-comm",),
    ),
    DispatcherRule(
        "qwen3-30b-hopper",
        {"hardware": ("hopper",), "family": ("qwen3_30b",)},
        HYBRIDEP,
        (HYBRIDEP, DEEPEP, ALLTOALL),
        "HybridEP won on 16 H100 with EP 16 (20.14729 s a step, with its other knobs): H100 is not DeepEP's",
    ),
    _VLM_NVL72,
    _VLM,
    DispatcherRule(
        "nvl72",
        {"hardware": ("nvl72",)},
        HYBRIDEP,
        (HYBRIDEP, DEEPEP, ALLTOALL),
        "the strongest candidate by topology; compare what else is installed",
    ),
    DispatcherRule(
        "nvl8",
        {"hardware": _EIGHT},
        None,
        (DEEPEP, HYBRIDEP),
        "hardware narrows the candidates, it names no winner: profile, then compare what is installed",
    ),
    _UNLISTED_GPU,
    _UNKNOWN_GPU,
)

RULES: Final[Mapping[Guidance, tuple[DispatcherRule, ...]]] = {"seed": SEED_RULES, "main-2026-08": MAIN_RULES}
SKILLS: Final[Mapping[Guidance, str]] = {"seed": SEED_SKILL, "main-2026-08": MAIN_SKILL}
