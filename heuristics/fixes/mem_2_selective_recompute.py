"""MEM-2: recompute of single modules instead of whole layers.

Changes what backward computes again: only modules that are cheap and hold much memory, such as the experts'
activation. Helps where whole layers, or the whole MoE layer with its all-to-all, run twice; and where
memory is short, before anything that costs more. What each module needs is listed with the guide's
table. Forbidden beside layer-level CPU offloading; FP8 delayed scaling forbids
modules that drop their output.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import grouped_gemm, holds, is_not, no_layer_offload, te_at_least
from heuristics.guides.modules import MODULES, recomputed_now
from heuristics.guides.recompute import RecomputeChoice, choose_recompute
from heuristics.run.run import Run
from traces.cures import cure
from traces.settings.settings import Value

_WHOLE_LAYERS: Final = ("recompute_method", "recompute_num_layers")
"""Settings of full recompute, which selective recompute refuses."""


def change(run: Run) -> Change:
    """The chosen modules; no recompute at all where memory has room; nothing where only MEM-9 is left."""
    choice = choose_recompute(run)
    if choice.granularity != "none" and not choice.modules:
        return Change()
    full = run.active.recompute_full is not False
    none: dict[str, Value] = {knob: None for knob in _WHOLE_LAYERS if full or run.config.on(knob)}
    if choice.granularity == "none":
        off: dict[str, Value] = {"recompute_granularity": None}
        return Change(none, megatron_lm=off, megatron_bridge=off)
    return Change(
        {"recompute_granularity": "selective", "recompute_modules": choice.modules, **none},
        harness=(f"--recompute_modules {','.join(choice.modules)}",),
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """Something narrower or more to recompute than now, and what its modules need."""
    choice = choose_recompute(run)
    if choice.granularity != "selective":
        return (_changes(run, choice),)
    return (_changes(run, choice), *_module_needs(run, choice), no_layer_offload(run))


def _changes(run: Run, choice: RecomputeChoice) -> Precondition:
    told = cure("threads", run.active.recorder)
    modules, full = run.active.recompute_modules, run.active.recompute_full
    if choice.granularity == "none":
        runs = True if full or modules else None if modules is None else False
        return holds("something is recomputed although memory has room", runs, told_by=told)
    if not choice.modules:
        return holds("a selective module is left to recompute", False, "MEM-6")
    same = None if modules is None else set(choice.modules) == set(recomputed_now(run))
    text = f"the recomputed modules are not {', '.join(choice.modules)} already"
    return is_not(text, False if full else same, "MEM-6", told)


def _module_needs(run: Run, choice: RecomputeChoice) -> list[Precondition]:
    needs = [grouped_gemm(run)] if "moe_act" in choice.modules else []
    dropped = [label for label in ("moe_act", "layernorm") if label in choice.modules]
    if dropped and (run.precision or "").startswith(("fp8", "mxfp8")):
        told = None if run.precision in ("fp8", "fp8_per_tensor") else True
        text = f"FP8 scaling is not delayed, which does not allow recompute of {' and '.join(dropped)}"
        needs += [holds(text, told, told_by="--precision"), te_at_least(run, "2.6.0")]
    for label in choice.modules:
        if MODULES[label].option:
            legal = True if MODULES[label].legal(run) else None
            needs.append(holds(f"{label}: {MODULES[label].needs}", legal, told_by="--family"))
    return needs


def changes(run: Run) -> tuple[str, ...]:
    """All recompute gone, or all but norms and activations; where something else is chosen, neither."""
    choice = choose_recompute(run)
    if choice.granularity == "none":
        return ("recompute_dropped",)
    return (
        ("recompute_narrowed",) if choice.modules and set(choice.modules) <= {"moe_act", "layernorm"} else ()
    )


FIX: Final = Fix(
    id="MEM-2",
    wall="memory",
    with_room=True,
    title="Recompute single modules, not whole layers",
    change=change,
    advice=advice,
    versions=(
        "Megatron-Core 0.12 and later; shared_experts since 0.14, gdn_norm_out since 0.19. Beside "
        "expert all-to-all overlap, moe is refused since 0.17. Nicknames: up_proj is mla_up_proj, norm "
        "layernorm, swiglu moe_act"
    ),
    gains=(
        Gain(
            (
                "42.4 GB per GPU for under 5 % of compute (30.4 GB MLA up-projection, 8.2 GB norms, 3.8 GB "
                "SwiGLU): DeepSeek-V3, 256 GPUs, PP4 VPP4 EP64"
            ),
            "Megatron-Bridge, skills/nemo-mbridge-perf-moe-optimization-workflow/card.yaml at 067f987d",
        ),
        Gain(
            "memory and time against no recompute: moe_act -1.85 % and +1.99 %, mla_up_proj -1.96 % and "
            "+5.19 %, core_attn -0.01 % and +3.85 %: Moonlight-16B, 8 H100, BF16, TP2 EP8, sequence 4096",
            "Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute/SKILL.md",
        ),
    ),
    side_effects=(
        "peak memory rises where whole layers were recomputed before: watch out-of-memory over several steps",
        "small modules cost launches more than arithmetic: on a host-bound GB200 run, dropping mla_up_proj "
        "gained 44.7 TFLOPS per GPU",
        "moe repeats dispatch and combine in backward",
    ),
    excludes=("MEM-9",),
    verify="only the chosen modules run twice, the expert all-to-all is not repeated, allocated peak fits",
    sources=(
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        (
            "Megatron-Bridge skills perf-activation-recompute, perf-moe-hardware-configs and "
            "perf-moe-optimization-workflow"
        ),
        (
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization/deepseek-v3-gb200-optimization.md"
            " at 1d9edcf8, 2.2.2"
        ),
    ),
    wins=("recompute", "allocator"),
    changes=changes,
    pytorch=Form(
        title="Checkpoint fewer modules",
        code=(
            "torch.utils.checkpoint.checkpoint only around modules whose activations are large and cheap",
            "or checkpoint(..., context_fn=...) with create_selective_checkpoint_contexts",
        ),
        verify="fewer forward kernels within backward; memory has room for what is kept",
        sources=("PyTorch, torch/utils/checkpoint.py",),
        versions="every PyTorch release since 2.0; selective checkpoints since 2.4",
        side_effects=("kept activations take memory",),
        kinds=("recompute",),
        changes=changes,
    ),
)
