"""What memory holds: recompute, offload, the optimizer's state, sharding, buffers of a fixed budget."""

from typing import Final

from heuristics.facts.dictionary import fact
from heuristics.fixes.change import Change
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Needs, Precondition
from heuristics.guides.modules import MODULES, meets, recomputed_now
from heuristics.guides.parallel import connections
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from traces.patterns import compiled, whole_number
from traces.settings.settings import Value

_QUEUES: Final = "env.CUDA_DEVICE_MAX_CONNECTIONS"
BUDGETED_BY: Final = "moe_expert_rank_capacity_factor"
_FRACTION: Final = "optimizer.optimizer_offload_fraction"
_WHOLE_LAYERS: Final = ("recompute_method", "recompute_num_layers")
"""Settings of full recompute, which selective recompute refuses."""


# ---- the allocator ----

_OF_ALLOCATOR: Final = compiled(
    "(?:backend|max_split_size_mb|max_non_split_rounding_mb|roundup_power2_divisions|"
    "garbage_collection_threshold|per_process_memory_fraction|release_lock_on_cudamalloc|"
    "pinned_[a-z_]{1,40}|graph_capture_record_stream_reuse):[A-Za-z0-9_.]{1,20}"
)
"""Its options beside expandable_segments: PyTorch, docs/source/notes/cuda.rst."""


def expandable(run: Run) -> Change:
    """Environment of every rank; NCCL's goes with it unless it is known that no CUDA graph replays.

    What else the allocator knows of its variable stays in it; other text may be a secret.
    """
    now = (run.config.env("PYTORCH_CUDA_ALLOC_CONF") or "").split(",")
    kept = [one.strip() for one in now if _OF_ALLOCATOR.fullmatch(one.strip())]
    no_register: dict[str, Value] = {} if run.tells("replays") is False else {"env.NCCL_GRAPH_REGISTER": "0"}
    text = ",".join((*kept, "expandable_segments:True"))
    return Change({"env.PYTORCH_CUDA_ALLOC_CONF": text, **no_register})


# ---- recompute ----


def recompute(run: Run) -> Change:
    """The chosen modules; no recompute at all where memory has room; nothing where only MEM-9 is left."""
    choice = run.tells("recompute_guide")
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


def module_needs(run: Run) -> Needs:
    """What makes the chosen modules legal, where an option tells it."""
    needs: list[Precondition] = []
    for label in run.tells("recompute_to_try"):
        module = MODULES[label]
        if module.option:
            legal = meets(label, run) or None
            needs += needed("legal_module", run, legal, module=label, needs=module.needs)
    return tuple(needs)


# ---- offload of activations ----


def offload(run: Run) -> Change:
    """Modules to start with, or more of them; where copies run already and the run fits, a part of them only.

    From Transformer Engine 2.10 on the variable keeps it from offloading weights too.
    """
    if run.tells("offload_turned_down"):
        return _fewer_layers(run) if run.tells("layer_offload") else _less(run)
    modules = (*(run.config.offloads() or ()), *offload_left(run))
    only: dict[str, Value] = {} if run.config.before("te", "2.10.0") else {"env.NVTE_CPU_OFFLOAD_V1": "1"}
    return Change({"fine_grained_activation_offloading": True, "offload_modules": modules, **only})


def _less(run: Run) -> Change:
    """A fraction; before Megatron-Core 0.19 fewer modules are the only way, and of one module none."""
    if not run.config.core_before("0.19.0"):
        return Change(
            {"activation_offload_fraction": RECIPES["halved"].value}, by_release=True, since="0.16.0"
        )
    now = run.config.offloads()
    if now is not None and len(now) == 1:
        return Change({"fine_grained_activation_offloading": False, "offload_modules": None}, since="0.16.0")
    return Change({"offload_modules": now[:-1] if now else ("expert_fc1",)}, since="0.16.0")


def _fewer_layers(run: Run) -> Change:
    """No offloaded layer; where memory is tight half of them. Megatron-LM has a flag for the number only."""
    layers = run.config.count("cpu_offloading_num_layers")
    if run.config.memory_tight and layers is not None and layers > 1:
        return Change({"cpu_offloading_num_layers": layers // 2})
    return Change({"cpu_offloading": False, "cpu_offloading_num_layers": 0})


@fact
def offload_left(run: Run) -> tuple[str, ...]:
    """What to offload next: of the experts, where none run twice anyway, then of attention."""
    now, attention = run.config.offloads() or (), ("core_attn", "attn_proj")
    only = run.active.moe is False or "moe" in recomputed_now(run)
    sets = (attention,) if only else (("expert_fc1", "moe_act"), attention)
    lacking = (tuple(name for name in one if name not in now) for one in sets)
    return next((names for names in lacking if names), ())


# ---- what the host holds for the GPU ----


# ---- state of the optimizer ----


def sharded(run: Run) -> Change:
    """Everything sharded, in the checkpoint format that it asserts, with more than one hardware queue."""
    queues = run.config.first(_QUEUES)
    several: dict[str, Value] = {_QUEUES: str(connections(run, fsdp=True))}
    return Change(
        {
            "ddp.use_megatron_fsdp": True,
            "ddp.use_distributed_optimizer": True,
            "ddp.data_parallel_sharding_strategy": "optim_grads_params",
            "ddp.average_in_collective": False,
            "checkpoint.ckpt_format": "fsdp_dtensor",
            **({} if (whole_number(str(queues)) or 0) > 1 else several),
        },
        harness=("--use_megatron_fsdp true",),
    )
