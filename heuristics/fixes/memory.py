"""What memory holds: recompute, offload, the optimizer's state, sharding, buffers of a fixed
budget.
"""

from functools import partial
from typing import Final

from heuristics.facts.dictionary import enter, fact
from heuristics.fixes.change import Change
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Needs, Precondition
from heuristics.guides.modules import MODULES, meets, recomputed_now
from heuristics.guides.parallel import connections
from heuristics.run.run import Run
from traces.patterns import compiled, whole_number
from traces.texts import Texts

BUDGETED_BY: Final = "moe_expert_rank_capacity_factor"
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
    now = map(str.strip, (run.config.env("PYTORCH_CUDA_ALLOC_CONF") or "").split(","))
    kept = filter(_OF_ALLOCATOR.fullmatch, now)
    no_register = {} if run.tells("replays") is False else {"env.NCCL_GRAPH_REGISTER": "0"}
    text = ",".join((*kept, "expandable_segments:True"))
    return Change({"env.PYTORCH_CUDA_ALLOC_CONF": text, **no_register})


# ---- recompute ----


def recompute(run: Run) -> Change:
    """The chosen modules; no recompute at all where memory has room; nothing where only MEM-9 is
    left.
    """
    choice = run.tells("recompute_guide")
    if choice.granularity != "none" and not choice.modules:
        return Change()
    full = run.active.recompute_full is not False
    none = {knob: None for knob in _WHOLE_LAYERS if full or run.config.on(knob)}
    if choice.granularity == "none":
        off = {"recompute_granularity": None}
        return Change(none, megatron_lm=off, megatron_bridge=off)
    return Change(
        {"recompute_granularity": "selective", "recompute_modules": choice.modules, **none},
        harness=(f"--recompute_modules {','.join(choice.modules)}",),
    )


def module_needs(run: Run) -> Needs:
    """What makes the chosen modules legal, where an option tells it."""
    needs = list[Precondition]()
    for label in run.tells("recompute_to_try"):
        module = MODULES[label]
        if module.option:
            legal = meets(label, run) or None
            needs += needed("legal_module", run, legal, module=label, needs=module.needs)
    return tuple(needs)


# ---- offload of activations ----


@fact
def modules_then(run: Run) -> Texts | None:
    """Modules to start with, or more of them; where copies run and the run fits, one less than
    now.
    """
    now = run.config.offloads() or ()
    if not run.tells("offload_turned_down"):
        return (*now, *run.tells("offload_left"))
    if len(now) == 1:
        return None
    return now[:-1] or ("expert_fc1",)


@fact
def several_queues(run: Run) -> bool:
    """Whether more than one hardware queue is configured."""
    return (whole_number(str(run.config.first("env.CUDA_DEVICE_MAX_CONNECTIONS"))) or 0) > 1


# hardware queues that the run wants with Megatron-FSDP
enter("queues_with_fsdp", partial(connections, fsdp=True), Run)


@fact
def offload_left(run: Run) -> Texts:
    """What to offload next: of the experts, where none run twice anyway, then of attention."""
    now, attention = run.config.offloads() or (), ("core_attn", "attn_proj")
    only = run.active.moe is False or "moe" in recomputed_now(run)
    sets = (attention,) if only else (("expert_fc1", "moe_act"), attention)
    for names in sets:
        if lacking := tuple(name for name in names if name not in now):
            return lacking
    return ()
