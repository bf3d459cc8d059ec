"""Communication under compute: of experts, of data and tensor parallelism; hardware queues for it."""

from typing import Final

from msgspec.structs import replace

from heuristics.config.logic import all_of
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.needs import head_room
from heuristics.fixes.precondition import Precondition, already_so, holds, is_not
from heuristics.guides.modules import has_shared_experts, recomputed_now
from heuristics.guides.parallel import connections
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit
from traces.settings.settings import Value

SMALL_EP: Final = Limit(
    4,
    "ranks",
    "Megatron-Bridge, docs/training/communication-overlap.md: not with alltoall and EP <= 4 on <= 2 nodes",
)
NORM_MARGIN: Final = Limit(
    16, "SMs", "Megatron-Bridge, docs/performance-guide.md: the SMs data-parallel collectives take"
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


def pays(run: Run) -> tuple[Precondition, ...]:
    """More than where its authors found that it does not, and room for activations of two microbatches."""
    few = run.config.ep is not None and run.config.ep <= SMALL_EP.value
    text = "the run has more than two nodes (on fewer, with small EP, it saved nothing)"
    nodes = (holds(text, None, told_by="the node count"),)
    small = nodes if few and run.active.dispatcher == "alltoall" else ()
    return (*small, *(head_room(run) if run.does_not_fit else ()))


def delayed(run: Run) -> tuple[Precondition, ...]:
    """Weight gradients that are not delayed yet."""
    return already_so("delay_wgrad_compute", run.config.overlap("delay_wgrad_compute") is True)


def shared_experts(run: Run) -> tuple[Precondition, ...]:
    """There are some."""
    told = "--family, or moe_shared_expert_intermediate_size of the configuration"
    return (holds("the model has shared experts", has_shared_experts(run), told_by=told, blocks=True),)


def beside_shared_experts(run: Run) -> tuple[Precondition, ...]:
    """A dispatcher that leaves room for them, and none of them recomputed."""
    now, modules = run.active.dispatcher, run.active.recompute_modules
    flex = () if run.config.core_before("0.18.0") else ("deepep", "hybridep", "ncclep")
    text = "the dispatcher is alltoall, or flex from Megatron-Core 0.18"
    again = None if modules is None else "shared_experts" in recomputed_now(run)
    return (
        holds(text, None if now == "unknown" else now in ("alltoall", *flex), "COM-2"),
        is_not("shared experts are not recomputed", again, "MEM-2"),
    )


# ---- of data and tensor parallelism ----


def of_data_parallelism(run: Run) -> Change:
    """Both overlaps, with what they need; aligned across stages where stages are cut into virtual ones."""
    aligned = run.config.vpp is not None and run.config.vpp > 1
    margin = str(int(NORM_MARGIN.value))
    return Change(
        {
            "ddp.use_distributed_optimizer": True,
            **{f"ddp.{name}": True for name in _OVERLAPS},
            "env.NVTE_FWD_LAYERNORM_SM_MARGIN": margin,
            "env.NVTE_BWD_LAYERNORM_SM_MARGIN": margin,
        },
        megatron_bridge={"ddp.align_param_gather": True} if aligned else {},
    )


def data_parallel(run: Run) -> tuple[Precondition, ...]:
    """Data parallelism that communicates. Whether the overlaps are on, no trace says for sure."""
    told = "overlap_grad_reduce and overlap_param_gather of the configuration"
    on = all_of(*(run.config.overlap(name) for name in _OVERLAPS))
    seen = cure("told_apart", run.active.recorder)
    return (
        holds("data-parallel collectives run", run.active.dp_active, told_by=seen),
        is_not("the overlaps are off so far", on, told_by=told),
    )


def of_tensor_parallelism(run: Run) -> Change:
    """The overlap with sequence parallelism, and one hardware queue where the GPU is older than Blackwell."""
    queues: dict[str, Value] = {} if run.config.before_blackwell() is False else {f"env.{_QUEUES}": "1"}
    return Change({"tp_comm_overlap": True, "sequence_parallel": True, **queues})


def engine(run: Run) -> tuple[Precondition, ...]:
    """Transformer Engine, by the layers, else by its release."""
    kind = run.config.first("transformer_impl")
    fact = kind == "transformer_engine" if kind is not None else bool(run.config.version_text("te")) or None
    return (holds("Transformer Engine is used", fact, told_by="--te-version"),)


# ---- hardware queues ----


def queues(run: Run) -> Change:
    """What the run as it is wants."""
    return Change({f"env.{_QUEUES}": str(connections(run))})


def other_queues(run: Run) -> tuple[Precondition, ...]:
    """Another value than the run wants."""
    now, wanted = run.config.first(f"env.{_QUEUES}"), str(connections(run))
    fact = None if now is None else str(now) != wanted
    told = f"{_QUEUES} in what --config reads"
    return (holds(f"{_QUEUES} is not {wanted} already", fact, told_by=told, blocks=True),)


def queued_kinds(fix: Fix, run: Run) -> Fix:
    """Without expert all-to-all where nothing is to run beside it."""
    return replace(fix, kinds=_DENSE) if run.active.ep_overlap is False else fix
