"""HST-4: fused kernels in place of many small ones.

Changes router, permutation, loss and norm to fused kernels: the same work in fewer launches. Helps where the
host cannot launch as fast as the GPU finishes, and many kernels are short. Needs Transformer Engine 2.1 for
the permute fusion and 2.7 for the router fusion. Some stacks failed in fused permutation: leave it off while
bringing a run up.
"""

from typing import Final

from heuristics.config.logic import all_of
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import is_not, te_at_least
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit

ROUTER_KERNELS: Final = Limit(
    31,
    "kernels",
    "Megatron-LM at 1d9edcf8, DeepSeek-V3 GB200 guide: what the router fusion leaves of 72",
)


def change(run: Run) -> Change:
    """What is not fused already; without MoE only the loss. The norm's fusion is for MXFP8."""
    names = _unfused(run) if run.active.moe is not False else []
    norm = ("NVTE_NORM_FWD_USE_CUDNN", "NVTE_NORM_BWD_USE_CUDNN") if run.precision == "mxfp8" else ()
    return Change(
        {
            **dict.fromkeys(names, True),
            "cross_entropy_loss_fusion": True,
            "cross_entropy_fusion_impl": "native",
            **{f"env.{name}": "1" for name in norm},
        },
        by_release=True,
    )


def _unfused(run: Run) -> list[str]:
    has_router = not run.config.core_before("0.14.0")
    names = ["moe_router_fusion"] if has_router and not _router_fused(run) else []
    if run.active.permute_fused is not True:
        names.append("moe_permute_fusion")
    if run.active.dispatcher == "hybridep" and not run.config.core_before("0.17.1"):
        names.append("moe_permute_fusion_into_hybridep")
    return names


def _router_fused(run: Run) -> bool | None:
    kernels = run.active.router_kernels_per_layer
    return run.config.on("moe_router_fusion") if kernels is None else kernels <= ROUTER_KERNELS.value


def advice(run: Run) -> tuple[Precondition, ...]:
    """Something left to fuse, and a Transformer Engine that has the fused kernels; without MoE, neither."""
    if run.active.moe is False:
        return ()
    router, permute = _router_fused(run), run.active.permute_fused
    told = cure("graphs", run.active.recorder)
    needs = [is_not("router or permutation run unfused", all_of(router, permute), told_by=told)]
    if not (router and permute):
        needs.append(te_at_least(run, "2.1.0" if router else "2.7.0"))
    return tuple(needs)


FIX: Final = Fix(
    id="HST-4",
    wall="host_overhead",
    title="Fuse small kernels",
    kinds=("launch", "python", "arrival"),
    change=change,
    advice=advice,
    versions=(
        "moe_permute_fusion since Megatron-Core 0.11, moe_router_fusion since 0.14, "
        "moe_permute_fusion_into_hybridep since 0.17.1. Megatron-LM's main refuses the loss fusion of "
        "Transformer Engine (te), so native is set; Bridge's harness still sets te. Norm with quantisation "
        "needs cuDNN 9.14"
    ),
    gains=(
        Gain(
            (
                "router fusion 10.5, permute fusion with pooled allocation 35, fused scale swizzles 35.5, "
                "norm with quantisation 13.8 TFLOPS/GPU: DeepSeek-V3, 256 GB200, MXFP8, EP32"
            ),
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8",
        ),
    ),
    side_effects=("fused permutation failed on one PyTorch 25.11 stack: switch it off there",),
    excludes=("CMP-2",),
    verify=(
        "fewer launches a step and fewer kernels under 10 us; the router's kernels fall towards 31 a layer"
    ),
    sources=(
        "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8, 2.1",
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and "
            "megatron/training/arguments.py at d98e8a64"
        ),
        "Megatron-Bridge skill perf-moe-comm-overlap (the failing stack)",
    ),
    changes=lambda run: ("fused_kernels",),
    any_program=True,
    pytorch=Form(
        title="Fuse small kernels",
        code=("torch.compile(model)", "torch.optim.AdamW(..., fused=True)"),
        inference=("torch.compile(model)",),
        verify="fewer and longer kernels in each step",
        sources=("PyTorch, torch/__init__.py and torch/optim/adamw.py",),
        side_effects=("the first steps compile: leave them out",),
    ),
)
