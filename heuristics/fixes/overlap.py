"""Communication under compute: of experts, of data and tensor parallelism; hardware queues for it."""

from typing import Final

from msgspec.structs import replace

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.guides.parallel import connections
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value

SMALL_EP: Final = Limit(
    4,
    "ranks",
    "Megatron-Bridge, docs/training/communication-overlap.md: not with alltoall and EP <= 4 on <= 2 nodes",
)
_QUEUES: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
_DENSE: Final = ("dp_reduce_scatter", "dp_all_gather", "all_reduce", "tp", "cp")
_OVERLAPS: Final = ("overlap_grad_reduce", "overlap_param_gather")


# ---- of experts ----


def of_experts(run: Run) -> Change:
    """Switch it on, alone. More than one hardware queue is needed, or nothing runs beside anything."""
    has_shared = run.config.may_overlap_shared
    return Change(
        set={
            **({"moe_shared_expert_overlap": False} if has_shared else {}),
            f"env.{_QUEUES}": str(connections(run, ep_overlap=True)),
        },
        megatron_lm={"overlap_moe_expert_parallel_comm": True},
        megatron_bridge={"overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": False},
        harness=(
            "--moe_a2a_overlap false",
            "comm_overlap.overlap_moe_expert_parallel_comm=true",
            *(("model.moe_shared_expert_overlap=false",) if has_shared else ()),
        ),
    )


# ---- of data and tensor parallelism ----


def of_data_parallelism(run: Run) -> Change:
    """Both overlaps, with what they need; aligned across stages where stages are cut into virtual ones."""
    aligned = run.config.vpp is not None and run.config.vpp > 1
    margin = str(RECIPES["norm_margin"].whole)
    return Change(
        {
            "ddp.use_distributed_optimizer": True,
            **{f"ddp.{name}": True for name in _OVERLAPS},
            "env.NVTE_FWD_LAYERNORM_SM_MARGIN": margin,
            "env.NVTE_BWD_LAYERNORM_SM_MARGIN": margin,
        },
        megatron_bridge={"ddp.align_param_gather": True} if aligned else {},
    )


def of_tensor_parallelism(run: Run) -> Change:
    """The overlap with sequence parallelism, and one hardware queue where the GPU is older than Blackwell."""
    queues: dict[str, Value] = {} if run.config.before_blackwell() is False else {f"env.{_QUEUES}": "1"}
    return Change({"tp_comm_overlap": True, "sequence_parallel": True, **queues})


# ---- hardware queues ----


def queues(run: Run) -> Change:
    return Change({f"env.{_QUEUES}": str(connections(run))})


def queued_kinds(fix: Fix, run: Run) -> Fix:
    """Without expert all-to-all where nothing is to run beside it."""
    return replace(fix, kinds=_DENSE) if run.active.ep_overlap is False else fix
