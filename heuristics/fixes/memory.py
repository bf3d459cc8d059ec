"""What memory holds: recompute, offload, the optimizer's state, sharding, buffers of a fixed budget."""

from typing import Final

from msgspec.structs import replace

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.needs import layer_offload, needed, no_layer_offload
from heuristics.fixes.precondition import Precondition, already_so, at_least, holds, is_not, te_at_least
from heuristics.guides.modules import MODULES, captured_alone, meets, recomputed_now, replays
from heuristics.guides.parallel import connections
from heuristics.guides.recompute import RecomputeChoice, choose_recompute
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit
from traces.settings.precision import BITS, bits_of
from traces.settings.settings import Value

_RECIPES: Final = "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d"
BUDGET: Final = Limit(1.5, "times the tokens of perfect balance", _RECIPES)
PAGES: Final = Limit(1.2, "times the activations of perfect balance, on the GPU", _RECIPES)
SPILL: Final = Limit(1.0, "times the activations of perfect balance, on the host", _RECIPES)
OFFLOADED: Final = Limit(
    0.5,
    "fraction of the offload groups",
    "ours: half as many copies, the smallest step that decides whether it helps",
)
OPTIMIZER: Final = Limit(
    0.25,
    "fraction of the optimizer's state",
    (
        "Megatron-Bridge skill perf-cpu-offloading: 25 to 50 % at moderate pressure; every further 25 % "
        "cost as much again"
    ),
)
LESS: Final = Limit(
    0.5,
    "of the fraction so far",
    "ours: Megatron-Bridge's skill perf-cpu-offloading measures about as much for every further quarter",
)
BUDGETED_BY: Final = "moe_expert_rank_capacity_factor"
_OPTIMIZER: Final = "optimizer.optimizer_cpu_offload"
_FRACTION: Final = "optimizer.optimizer_offload_fraction"
_WHOLE_LAYERS: Final = ("recompute_method", "recompute_num_layers")
"""Settings of full recompute, which selective recompute refuses."""


# ---- the allocator ----


def expandable(run: Run) -> Change:
    """Environment of every rank; NCCL's goes with it unless it is known that no CUDA graph replays."""
    no_register: dict[str, Value] = {} if replays(run) is False else {"env.NCCL_GRAPH_REGISTER": "0"}
    return Change({"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", **no_register})


# ---- recompute ----


def recompute(run: Run) -> Change:
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


def recompute_needs(run: Run) -> tuple[Precondition, ...]:
    """Something narrower or more to recompute than now, and what its modules need."""
    choice = choose_recompute(run)
    if choice.granularity != "selective":
        return (_other_modules(run, choice),)
    return (_other_modules(run, choice), *_module_needs(run, choice), *no_layer_offload(run))


def _other_modules(run: Run, choice: RecomputeChoice) -> Precondition:
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
    needs = [*needed("grouped_gemm", run)] if "moe_act" in choice.modules else []
    dropped = [label for label in ("moe_act", "layernorm") if label in choice.modules]
    if dropped and (run.precision or "").startswith(("fp8", "mxfp8")):
        told = None if run.precision in ("fp8", "fp8_per_tensor") else True
        text = f"FP8 scaling is not delayed, which does not allow recompute of {' and '.join(dropped)}"
        needs += [holds(text, told, told_by="--precision"), te_at_least(run, "2.6.0")]
    for label in choice.modules:
        if MODULES[label].option:
            legal = True if meets(label, run) else None
            needs.append(holds(f"{label}: {MODULES[label].needs}", legal, told_by="--family"))
    return needs


def recompute_changes(run: Run) -> tuple[str, ...]:
    """All recompute gone, or all but norms and activations; where something else is chosen, neither."""
    choice = choose_recompute(run)
    if choice.granularity == "none":
        return ("recompute_dropped",)
    narrowed = choice.modules and set(choice.modules) <= {"moe_act", "layernorm"}
    return ("recompute_narrowed",) if narrowed else ()


def whole_layers(run: Run) -> Change:
    """Every layer; with `block` and fewer layers, only the first ones of each stage."""
    layers, stages = run.config.positive("num_layers"), run.config.pp
    each = layers // stages if layers and stages else "N"
    return Change(
        {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
        harness=(f"--recompute_num_layers {each}",),
    )


def nothing_narrower(run: Run) -> tuple[Precondition, ...]:
    """Nothing narrower is left, and what whole layers assert against is off."""
    shown, narrower = run.active, choose_recompute(run).granularity != "full"
    whole, told = "whole layers are not recomputed yet", cure("threads", shown.recorder)
    fact = False if run.config.memory_tight is False else None if narrower else True
    graphs = True if replays(run) is False else run.config.full_iteration
    return (
        is_not(whole, shown.recompute_full, told_by=told),
        holds("selective recompute has been tried and does not fit", fact, "MEM-2"),
        is_not("no expert all-to-all overlap", shown.ep_overlap, "overlap_moe_expert_parallel_comm=false"),
        holds("CUDA graphs are off, or of the whole iteration", graphs, "cuda_graph_impl=none"),
        *no_layer_offload(run),
    )


# ---- offload of activations ----


def offload(run: Run) -> Change:
    """Modules to start with, or more of them; where copies run already and the run fits, a part of them only.

    From Transformer Engine 2.10 on the variable keeps it from offloading weights too.
    """
    if _is_less(run):
        return _fewer_layers(run) if layer_offload(run) else _less(run)
    modules = (*(run.config.offloads() or ()), *_left(run))
    only: dict[str, Value] = {} if run.config.before("te", "2.10.0") else {"env.NVTE_CPU_OFFLOAD_V1": "1"}
    return Change({"fine_grained_activation_offloading": True, "offload_modules": modules, **only})


def _is_less(run: Run) -> bool:
    """Whether the fix turns offload down: copies run, and memory holds."""
    return run.active.offload is True and not run.does_not_fit


def _less(run: Run) -> Change:
    """A fraction; before Megatron-Core 0.19 fewer modules are the only way, and of one module none."""
    if not run.config.core_before("0.19.0"):
        return Change({"activation_offload_fraction": OFFLOADED.value}, by_release=True, since="0.16.0")
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


def _left(run: Run) -> tuple[str, ...]:
    """What to offload next: of the experts, where none run twice anyway, then of attention."""
    now, attention = run.config.offloads() or (), ("core_attn", "attn_proj")
    only = run.active.moe is False or "moe" in recomputed_now(run)
    sets = (attention,) if only else (("expert_fc1", "moe_act"), attention)
    lacking = (tuple(name for name in one if name not in now) for one in sets)
    return next((names for names in lacking if names), ())


def more_or_less(fix: Fix, run: Run) -> Fix:
    """More or less of it, as such, each with the cost that it acts on."""
    if not _is_less(run):
        more = "more activations" if run.active.offload else "activations of single modules"
        return replace(fix, title=f"Offload {more}", wins=("recompute", "allocator"))
    less = replace(fix, title="Offload fewer activations", wins=("offload",), with_room=True)
    if not layer_offload(run):
        return less
    return replace(
        less,
        title="Offload fewer layers",
        versions="every release of Megatron-Core that has cpu_offloading",
        gains=(),
        side_effects=("the activations of these layers stay on the GPU: its peak of memory rises",),
    )


def offload_needs(run: Run) -> tuple[Precondition, ...]:
    """Releases, and what must not run beside it; for fewer whole layers only room."""
    if _is_less(run) and layer_offload(run):
        text = "memory has room for the activations that stay on the GPU"
        return (holds(text, _has_room(run), told_by="--memory-tight"),)
    text, kind = "no full recompute, which leaves nothing inside a layer to offload", "transformer_impl"
    te = None if run.config.first(kind) is None else run.config.first(kind) == "transformer_engine"
    needs = [
        is_not(text, run.active.recompute_full, "MEM-2"),
        *no_layer_offload(run),
        holds("layers are Transformer Engine's", te, "--transformer-impl transformer_engine"),
    ]
    if not _is_less(run):
        needs.append(holds("a module is left to offload", bool(_left(run)), "MEM-7"))
    if replays(run):
        beside, alone = " beside CUDA graphs", captured_alone(run, "moe")
        needs += [
            at_least("torch", run.config.version_text("torch"), "2.9.0", beside),
            te_at_least(run, "2.14.0", beside),
            is_not("no CUDA graph of the whole moe module", alone, "HST-3"),
        ]
    return tuple(needs)


def _has_room(run: Run) -> bool | None:
    """Known where it was said so; memory that is tight may still hold it."""
    return (run.config.memory_tight is False) or None


# ---- what the host holds for the GPU ----


def resident(run: Run) -> Change:
    """Megatron's optimizer offload off, where the configuration has it on."""
    return Change({_OPTIMIZER: False}) if run.config.on(_OPTIMIZER) else Change()


def room_for_resident(run: Run) -> tuple[Precondition, ...]:
    """Room for what moves to the GPU; without it there is the prefetch."""
    text = "memory has room for what is kept on the GPU; else prefetch it"
    return (holds(text, _has_room(run), told_by="--memory-tight"),)


def less_on_cpu(run: Run) -> Change:
    """Half of the fraction, which is 1 where it is not set, with its copies overlapped."""
    now = run.config.first(_FRACTION)
    fraction = (float(now) if isinstance(now, int | float) else 1.0) * LESS.value
    return Change({_FRACTION: fraction, "optimizer.overlap_cpu_optimizer_d2h_h2d": True})


def cpu_steps(run: Run) -> tuple[Precondition, ...]:
    """That the CPU steps the optimizer is configured, or seen by its copies."""
    asked, seen = run.config.on(_OPTIMIZER), run.seen_ns("host_overhead", ("cpu_optimizer",))
    steps = asked is not False and (asked or bool(seen))
    return (holds("the CPU steps the optimizer between its copies", steps),)


# ---- state of the optimizer ----


def moments_narrow(run: Run) -> tuple[Precondition, ...]:
    """Both moments in another format than FP32 already."""
    precise = run.config.on("optimizer.use_precision_aware_optimizer") is True
    moments = ("optimizer.exp_avg_dtype", "optimizer.exp_avg_sq_dtype")
    wide = (None, "fp32", "float32", "torch.float32")
    narrow = all(run.config.first(name) not in wide for name in moments)
    return already_so(moments[0], narrow and precise)


def gathered_wide(run: Run) -> tuple[Precondition, ...]:
    """Parameters are gathered in FP8 only where that is asked for, whatever the precision."""
    bits = bits_of(run.precision)
    allowed = run.precision == "fp8_delayed" or (bits is not None and bits > BITS["mxfp8"])
    gathered = run.config.on("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    return (
        holds(
            "parameters are not gathered in FP8, or the recipe is delayed scaling",
            True if allowed or gathered is False else None,
            "--fp8-param-gather left out",
            "--precision, or --fp8-param-gather left out",
        ),
    )


def sharded(run: Run) -> Change:
    """Everything sharded, in the checkpoint format that it asserts, with more than one hardware queue."""
    return Change(
        {
            "ddp.use_megatron_fsdp": True,
            "ddp.use_distributed_optimizer": True,
            "ddp.data_parallel_sharding_strategy": "optim_grads_params",
            "ddp.average_in_collective": False,
            "checkpoint.ckpt_format": "fsdp_dtensor",
            "env.CUDA_DEVICE_MAX_CONNECTIONS": str(connections(run, fsdp=True)),
        },
        harness=("--use_megatron_fsdp true",),
    )


def shardable(run: Run) -> tuple[Precondition, ...]:
    """Ranks to share the state."""
    shared = run.active.dp_active or (run.config.dp or 1) > 1 or None
    told = f"{cure('told_apart', run.active.recorder)}; or world_size and parallel sizes"
    text = "more than one data-parallel rank shares the state"
    return (holds(text, shared, told_by=told, blocks=True),)


def weights_apart(run: Run) -> tuple[Precondition, ...]:
    """Weights of experts that are tensors of their own."""
    grouped = run.config.on("moe_single_grouped_weight", "moe_single_grouped_bias")
    cure = "moe_single_grouped_weight of the configuration"
    return (is_not("expert weights are not one grouped tensor", grouped, cure),)


# ---- budgets of the experts ----


def not_budgeted(run: Run) -> tuple[Precondition, ...]:
    """A budget that is not set yet, or that the trace shows to be without effect."""
    return already_so(BUDGETED_BY, not run.active.token_count_sync and run.config.on(BUDGETED_BY) is True)


def experts_stay(run: Run) -> tuple[Precondition, ...]:
    """No activations of experts that offload moves as well."""
    offloaded = run.config.names("offload_modules")
    moved = None if offloaded is None else bool({"expert_fc1", "moe_act", "fused_group_mlp"} & {*offloaded})
    fact, told = False if run.active.offload is False else moved, "offload_modules of the configuration"
    return (is_not("no activations of experts are offloaded", fact, told_by=told),)
