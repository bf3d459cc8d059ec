"""MEM-6: activations of single modules to the host, or less of that.

Changes where some modules keep their inputs until backward: in host memory, copied under compute. Helps
where selective recompute is not enough, and where it lets TP or recompute go; where offload copies are
exposed already, a smaller fraction takes them off the critical path, and MEM-2 replaces them. Forbidden
beside layer-level cpu_offloading, for expert modules inside a recomputed MoE layer, and pointless under
full recompute.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.versions import numbers
from heuristics.fixes.fix import Fix, Gain, Knobs, Precondition
from heuristics.fixes.preconditions import at_least, holds, is_not, layer_offload
from heuristics.guides.graph_modules import captured_alone, replays
from heuristics.guides.recompute import recomputed_now
from heuristics.run.run import Run
from traces.limits import Limit

FRACTION: Final = Limit(
    0.5,
    "fraction of the offload groups",
    "ours: half as many copies, the smallest step that tells whether it helps",
)
_EXPERTS: Final = ("expert_fc1", "moe_act")
_ATTENTION: Final = ("core_attn", "attn_proj")


def knobs(run: Run) -> Knobs:
    """Modules to start with; where copies run already, a part of them only."""
    if run.active.offload:
        return _less(run)
    modules = _modules(run)
    return Knobs(
        megatron_lm=("--fine-grained-activation-offloading", f"--offload-modules {' '.join(modules)}"),
        megatron_bridge=(
            "model.fine_grained_activation_offloading=true",
            f"model.offload_modules=[{','.join(modules)}]",
        ),
        environment=_environment(run),
    )


def _less(run: Run) -> Knobs:
    """The fraction came with Megatron-Core 0.19; before, fewer modules are the only way."""
    if run.config.core_before("0.19.0"):
        return Knobs(
            megatron_lm=("--offload-modules expert_fc1",),
            megatron_bridge=("model.offload_modules=[expert_fc1]",),
        )
    return Knobs(
        megatron_lm=(f"--activation-offload-fraction {FRACTION.value}",),
        megatron_bridge=(f"model.activation_offload_fraction={FRACTION.value}",),
    )


def _modules(run: Run) -> tuple[str, ...]:
    return _ATTENTION if run.active.moe is False or "moe" in recomputed_now(run) else _EXPERTS


def _environment(run: Run) -> tuple[str, ...]:
    """Transformer Engine would offload weights too, from 2.10 on, without it."""
    te = run.config.version_text("te")
    old = te is not None and numbers(te) < numbers("2.10.0")
    return () if old else ("NVTE_CPU_OFFLOAD_V1=1",)


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Releases, and what must not run beside it."""
    shown, implementation = run.active, run.config.first("transformer_impl")
    needs = [
        at_least("Megatron-Core", run.config.core_text, "0.16.0", "--core-version"),
        is_not(
            "no full recompute: it keeps nothing inside a layer to offload", shown.recompute_full, "MEM-2"
        ),
        is_not("layer-level CPU offloading is off", layer_offload(run), "cpu_offloading=false"),
        holds(
            "layers are Transformer Engine's",
            None if implementation is None else implementation == "transformer_engine",
            "transformer_impl of the configuration",
        ),
    ]
    if replays(run):
        needs += [
            at_least(
                "PyTorch beside CUDA graphs", run.config.version_text("torch"), "2.9.0", "--torch-version"
            ),
            at_least(
                "Transformer Engine beside CUDA graphs",
                run.config.version_text("te"),
                "2.14.0",
                "--te-version",
            ),
            is_not("no CUDA graph of the whole moe module", captured_alone(run, "moe"), "HST-3"),
        ]
    return tuple(needs)


FIX: Final = Fix(
    id="MEM-6",
    wall="memory",
    title="Offload activations of single modules, or less of them",
    kinds=(),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "Megatron-Core 0.16 and later; the fraction since 0.19. Transformer Engine 2.10 needs "
        "NVTE_CPU_OFFLOAD_V1=1"
    ),
    gains=(
        Gain(
            "169 GB to 151 GB (-10.7 %) for -1.6 % of TFLOPS: DeepSeek-V3",
            "per a digest of arXiv 2603.07685, table 5",
        ),
        Gain(
            "800 to 920 TFLOPS (+15 %) as it allowed TP2 EP16 to become TP1 EP64: Qwen3-235B",
            "per a digest of arXiv 2603.07685, table 5",
        ),
    ),
    side_effects=(
        "copies share the host link with data loading and, without GPUDirect, the network",
        "attn_proj goes only together with core_attn; attn_norm and mlp_norm not with CUDA graphs",
        "not for expert modules with paged stash; not with recompute of mhc",
        "host memory fills",
    ),
    excludes=("MEM-9", "MEM-11"),
    verify="NVTX ranges activation offloading and reloading; their copies lie under compute",
    sources=(
        "Megatron-LM, docs/user-guide/features/fine_grained_activation_offloading.md at d98e8a64",
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and "
            "megatron/training/arguments.py at d98e8a64"
        ),
        "Megatron-Bridge, src/megatron/bridge/training/config.py at 067f987d",
    ),
    direct=("offload",),
    wins=("recompute", "offload", "allocator"),  # weights that live on the host stay there
)
