"""The host: where its processes run, when Python collects, what it launches and what it loads."""

from typing import Final

from msgspec.structs import replace

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import HALF_A_WALL, Limit

ROUTER_KERNELS: Final = Limit(
    31,
    "kernels",
    "Megatron-LM at 1d9edcf8, DeepSeek-V3 GB200 guide: what the router fusion leaves of 72",
)


# ---- CPUs ----


def bound(run: Run) -> Change:
    """numactl before each rank's command; x86's number of GPUs a NUMA node where the GPU is unknown."""
    share = RECIPES["numa_of_grace" if run.config.hardware_class == "nvl72" else "numa_of_x86"].whole
    node = f"$((SLURM_LOCALID/{share}))"
    command = f"numactl --cpunodebind={node} --membind={node}"
    return Change({"launcher.numa_binding": True}, launch=(command,), how=(say("fixes.before-command"),))


# ---- Python's collector ----


def likely_kinds(fix: Fix, run: Run) -> Fix:
    """By figures alone, collections that have none of their own are somewhere in Python's time."""
    named = {*(run.cost_by_kind_ns.get("host_overhead") or ())} & {*fix.kinds}
    if run.active.recorder is not None or named:
        return fix
    return replace(fix, kinds=(*fix.kinds, "python"), direct=fix.kinds)


# ---- small kernels ----


def fused(run: Run) -> Change:
    """What is not fused already; without MoE only the loss. The norm's fusion is for MXFP8."""
    names = _unfused(run) if run.active.moe is not False else []
    norm = ("NVTE_NORM_FWD_USE_CUDNN", "NVTE_NORM_BWD_USE_CUDNN") if run.config.runs_mxfp8 else ()
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


def fused_optimizer(run: Run) -> tuple[str, ...]:
    """Where a run trains, and no fused kernel steps its optimizer yet."""
    is_set = "fused_optimizer" in (run.observed.in_use or ())
    return () if is_set or run.active.training is False else ("torch.optim.AdamW(..., fused=True)",)


# ---- input ----


_PINNED: Final = ("DataLoader(..., pin_memory=True)", "batch = batch.to(device, non_blocking=True)")
_AHEAD: Final = (
    "with torch.cuda.stream(copies):  # a stream of their own, while this batch is computed",
    "    following = following.to(device, non_blocking=True)",
)


def pinned(run: Run) -> tuple[str, ...]:
    """How input copies keep neither host nor GPU: by pinned memory, or where it is pinned, a batch ahead."""
    pageable, exposed = run.observed.pageable_input, run.observed.exposed_input_frac or 0.0
    if pageable or (pageable is None and exposed >= HALF_A_WALL.value):
        return _PINNED
    return _AHEAD if exposed >= HALF_A_WALL.value else ()


def loader_ahead(run: Run) -> Change:
    """Of the loader that names show."""
    ahead = {
        "dali": say("fixes.ahead-dali"),
        "ffcv": say("fixes.ahead-ffcv"),
        "tf_data": say("fixes.ahead-tf-data"),
    }
    uses = run.observed.in_use or ()
    return Change(how=tuple(text for use, text in ahead.items() if use in uses) or tuple(ahead.values()))
