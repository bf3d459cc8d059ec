"""MEM-6: activations of single modules to the host, or less of that.

Changes where some modules keep their inputs until backward: in host memory, copied under compute. Helps
where selective recompute is not enough, and where it lets TP or recompute go; where offload copies are
exposed already, a smaller fraction takes them off the critical path, and MEM-2 replaces them. Where whole
layers are offloaded (cpu_offloading) it offloads fewer of them. More of single modules is forbidden beside
that, for expert modules inside a recomputed MoE layer, and pointless under full recompute.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    at_least,
    holds,
    is_not,
    layer_offload,
    no_layer_offload,
    te_at_least,
    te_layers,
)
from heuristics.guides.modules import captured_alone, recomputed_now, replays
from heuristics.run.run import Run
from traces.limits import Limit

FRACTION: Final = Limit(
    0.5,
    "fraction of the offload groups",
    "ours: half as many copies, the smallest step that decides whether it helps",
)
_EXPERTS: Final = ("expert_fc1", "moe_act")
_ATTENTION: Final = ("core_attn", "attn_proj")


def change(run: Run) -> Change:
    """Modules to start with, or more of them; where copies run already and the run fits, a part of them only.

    From Transformer Engine 2.10 on the variable keeps it from offloading weights too.
    """
    if _is_less(run):
        return _fewer_layers(run) if layer_offload(run) else _less(run)
    modules = (*(run.config.offloads() or ()), *_left(run))
    only = {} if run.config.before("te", "2.10.0") else {"env.NVTE_CPU_OFFLOAD_V1": "1"}
    return Change({"fine_grained_activation_offloading": True, "offload_modules": modules, **only})


def _is_less(run: Run) -> bool:
    """Whether the fix turns offload down: copies run, and memory holds."""
    return run.active.offload is True and not run.does_not_fit


def _less(run: Run) -> Change:
    """A fraction; before Megatron-Core 0.19 fewer modules are the only way, and of one module none."""
    if not run.config.core_before("0.19.0"):
        return Change({"activation_offload_fraction": FRACTION.value}, by_release=True, since="0.16.0")
    now = run.config.offloads()
    if now is not None and len(now) == 1:
        return Change({"fine_grained_activation_offloading": False, "offload_modules": None}, since="0.16.0")
    return Change({"offload_modules": now[:-1] if now else _EXPERTS[:1]}, since="0.16.0")


def _fewer_layers(run: Run) -> Change:
    """No offloaded layer; where memory is tight half of them. Megatron-LM has a flag for the number only."""
    layers = run.config.count("cpu_offloading_num_layers")
    if run.config.memory_tight and layers is not None and layers > 1:
        return Change({"cpu_offloading_num_layers": layers // 2})
    return Change({"cpu_offloading": False, "cpu_offloading_num_layers": 0})


def _left(run: Run) -> tuple[str, ...]:
    """What to offload next: of the experts, where none run twice anyway, then of attention."""
    now = run.config.offloads() or ()
    attention = run.active.moe is False or "moe" in recomputed_now(run)
    sets = (_ATTENTION,) if attention else (_EXPERTS, _ATTENTION)
    lacking = ([name for name in one if name not in now] for one in sets)
    return tuple(next((names for names in lacking if names), ()))


def _of_run(fix: Fix, run: Run) -> Fix:
    """More or less of it, as such, each with the cost that it acts on."""
    if _is_less(run) and layer_offload(run):
        return replace(
            fix,
            title="Offload fewer layers",
            versions="every release of Megatron-Core that has cpu_offloading",
            gains=(),
            side_effects=("the activations of these layers stay on the GPU: its peak of memory rises",),
            wins=("offload",),
            with_room=True,
        )
    if _is_less(run):
        return replace(fix, title="Offload fewer activations", wins=("offload",), with_room=True)
    more = "more activations" if run.active.offload else "activations of single modules"
    return replace(fix, title=f"Offload {more}", wins=("recompute", "allocator"))


def advice(run: Run) -> tuple[Precondition, ...]:
    """Releases, and what must not run beside it; for fewer whole layers only room."""
    if _is_less(run) and layer_offload(run):
        tight = run.config.memory_tight
        text = "memory has room for the activations that stay on the GPU"
        return (holds(text, (tight is False) or None, told_by="--memory-tight"),)
    text = "no full recompute, which leaves nothing inside a layer to offload"
    needs = [
        is_not(text, run.active.recompute_full, "MEM-2"),
        no_layer_offload(run),
        te_layers(run),
    ]
    if not _is_less(run):
        needs.append(holds("a module is left to offload", bool(_left(run)), "MEM-7"))
    if replays(run):
        torch = run.config.version_text("torch")
        needs += [
            at_least("torch", torch, "2.9.0", " beside CUDA graphs"),
            te_at_least(run, "2.14.0", " beside CUDA graphs"),
            is_not("no CUDA graph of the whole moe module", captured_alone(run, "moe"), "HST-3"),
        ]
    return tuple(needs)


FIX: Final = Fix(
    id="MEM-6",
    wall="memory",
    title="Offload activations of single modules, or less of them",
    change=change,
    advice=advice,
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
    of_run=_of_run,
)
