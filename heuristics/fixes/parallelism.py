"""How a model is cut over ranks, and how much each launch has to do: sizes, layouts and the micro-batch."""

from math import gcd
from typing import Final

from heuristics.fixes.change import MICRO_BATCH, Change
from heuristics.fixes.needs import head_room
from heuristics.fixes.precondition import Precondition, already_so, holds, is_not
from heuristics.guides.memory_use import (
    ASK_MEMORY,
    ROOM_TO_HALVE,
    UNEVEN,
    has_room_to_halve,
    is_tight,
    stage_memory,
)
from heuristics.guides.parallel import LONG, guided_cp, is_far, sequence_length, wider_cp
from heuristics.run.run import Run
from heuristics.run.sizes import (
    OTHER_LAYOUTS,
    batch_divides,
    deeper_pp,
    doubled_micro_batch,
    even_layout,
    experts_divide,
    fewer_stages,
    present_layout,
    virtual_stages,
    wider_ep,
)
from traces.limits import Limit
from traces.settings.knobs import CP, EP, ETP, PP, TP, VIRTUAL_STAGES
from traces.settings.settings import Value
from traces.settings.spelling import LAYOUT
from traces.settings.values import fullest_rank
from traces.spelling import chosen, gigabytes

SHORT: Final = Limit(
    0.5, "fraction of kernels under 10 us", "ours: below it most launches already carry enough work"
)


# ---- pipeline stages ----


def even_stages(run: Run) -> Change:
    """Virtual stages that divide a rank's layers; where none do, or some are cut already, stages by name.

    LAYOUT and N are the model's, to be filled in; before 0.13 only equal stages can be asked for.
    """
    cut = run.config.pp_layout or (run.config.vpp or 1) > 1
    virtual, layout = None if cut else virtual_stages(run), even_layout(run)
    if virtual is not None:
        return Change({VIRTUAL_STAGES: virtual}, megatron_lm=_without_others(run))
    if not run.config.core_before("0.13.0"):
        return _by_layout(run, *(layout or (LAYOUT, 0)))
    layers = "num_layers_per_virtual_pipeline_stage"
    filled_in = Change(megatron_lm={layers: "N"}, megatron_bridge={VIRTUAL_STAGES: "N"}, harness=())
    return filled_in if layout is None else Change()


def _by_layout(run: Run, named: str, virtual: int) -> Change:
    """Stages by name, with their number a rank where that is known (0: it is not)."""
    count: dict[str, Value] = {VIRTUAL_STAGES: virtual if virtual > 1 else None} if virtual else {}
    whole: dict[str, Value] = {"pipeline_model_parallel_layout": named, **_without_others(run)}
    return Change(whole, megatron_bridge=count, since="0.13.0")


def _without_others(run: Run) -> dict[str, Value]:
    return {name: None for name in OTHER_LAYOUTS if run.config.first(name) is not None}


def uneven_stages(run: Run) -> tuple[Precondition, ...]:
    """Pipeline stages, of which there may be virtual ones: those take microbatches in rounds."""
    number, pp = run.config.microbatches, run.config.pp
    cut = (
        _stages_cut(run),
        *already_so("pipeline_model_parallel_layout, with stages as even as they can be,", _is_even(run)),
    )
    if number is None or pp is None:
        return cut
    text = "the number of microbatches is a multiple of PP, as virtual stages need"
    return holds(text, number % pp == 0, "global_batch_size of the configuration"), *cut


def _stages_cut(run: Run) -> Precondition:
    text = "layers are cut into pipeline stages (PP above 1)"
    return holds(text, run.config.pipeline_parallel, told_by="--pp")


def _is_even(run: Run) -> bool:
    """Whether a rank has no more to compute, by the split as it is, than one of the layout we name.

    Not where it would add the virtual stages that there are none of: they shorten warm-up and cool-down.
    """
    now, named = run.config.pp_layout or present_layout(run), even_layout(run)
    if now is None or named is None or run.config.pp is None or named[1] > (run.config.vpp or 1):
        return False
    own, best = fullest_rank(now, run.config.pp), fullest_rank(named[0], run.config.pp)
    return own is not None and best is not None and own <= best


def even_memory(run: Run) -> Change:
    """The layout whose fullest stage is estimated to hold least; of equal stages where none can be."""
    found = stage_memory(run)
    if found is not None:
        return _by_layout(run, found.layout, found.virtual)
    return _by_layout(run, *(even_layout(run) or (LAYOUT, 0)))


def uneven_memory(run: Run) -> tuple[Precondition, ...]:
    """Stages that the estimate shows to be uneven, and a layout that evens them."""
    stages, found = _stages_cut(run), stage_memory(run)
    if found is None:
        told = "--config with the model's sizes, batch sizes and world size"
        return stages, holds("the estimate of memory shows uneven stages", None, told_by=told, blocks=True)
    uneven = (
        f"stages are uneven in memory: the fullest is estimated at {gigabytes(found.fullest)}, "
        f"the emptiest at {gigabytes(min(found.stages))}"
    )
    best = f"in its fullest stage: {gigabytes(found.best)}"
    less = f"another layout holds at least {chosen(UNEVEN.value)} less {best}"
    fits = found.freed >= UNEVEN.value * found.fullest
    return stages, holds(uneven, found.is_uneven, "MEM-8"), holds(less, fits, "MEM-8")


# ---- context parallelism ----


def exchange_kind(run: Run) -> Change:
    """One kind for all layers, with the ranks of each level where there are two."""
    kind, sizes = _kind_and_sizes(run)
    levels = {"hierarchical_context_parallel_sizes": sizes} if sizes else {}
    return Change({"cp_comm_type": kind, **levels})


def _kind_and_sizes(run: Run) -> tuple[str, tuple[int, ...]]:
    """The kind to try next, and the ranks of its levels: the ring, unless it is known to run already."""
    if run.config.first("cp_comm_type") != "p2p" or run.config.cp is None:
        return "p2p", ()
    inner = _inside(run, run.config.cp)
    outer = run.config.cp // inner
    return ("a2a+p2p", (inner, outer)) if inner > 1 and outer > 1 else ("a2a", ())


def _heads(run: Run) -> int | None:
    return run.config.positive("num_query_groups") or run.config.positive("num_attention_heads")


def _inside(run: Run, cp: int) -> int:
    """Largest part of CP that divides CP and the heads, and that one NVLink domain holds."""
    domain = run.config.nvlink_domain or cp
    heads = _heads(run) or cp
    heads //= run.config.tp if run.config.tp and not heads % run.config.tp else 1
    both = gcd(cp, heads)
    return max(size for size in range(1, min(both, domain) + 1) if not both % size)


def other_exchange(run: Run) -> tuple[Precondition, ...]:
    """Context parallelism, of another kind so far, and heads to spread."""
    kind, now, cp = _kind_and_sizes(run)[0], run.config.first("cp_comm_type"), run.config.cp
    cut = run.active.cp_active if cp is None else cp > 1
    needs = [
        holds("sequences are cut across ranks (CP above 1)", cut, told_by="--cp"),
        is_not(
            f"context parallelism does not use {kind} yet",
            None if now is None else now == kind,
            told_by="cp_comm_type of the configuration",
        ),
    ]
    if kind == "a2a" and cp is not None:
        heads = _heads(run)
        told = None if heads is None else heads % (cp * (run.config.tp or 1)) == 0
        cure = "num_attention_heads of the configuration"
        needs.append(holds("CP divides the heads of a rank", told, told_by=cure))
    return tuple(needs)


def more_context(run: Run) -> Change:
    """The CP that the length asks for, as far as ranks divide; twice where the length is unknown, else N."""
    cp = run.config.cp
    known = sequence_length(run) is not None
    size: Value = "N" if cp is None else wider_cp(run) if known else 2 * cp
    return Change({CP: size}) if size else Change()


def long_sequences(run: Run) -> tuple[Precondition, ...]:
    """A long sequence, memory that it fills, and ranks to give up."""
    length, cp = sequence_length(run), run.config.cp
    text = f"sequences are long: {LONG.value:.0f} tokens or more"
    long = None if length is None else length >= LONG.value
    needs = [
        holds(text, long, told_by="seq_length of the configuration", blocks=True),
        holds("memory is short", is_tight(run), told_by=ASK_MEMORY),
    ]
    if length is None or cp is None:
        return (*needs, holds("CP is known", None if cp is None else True, told_by="--cp"))
    start = guided_cp(length)
    needs.append(holds(f"CP{cp} is below CP{start}, where the guide starts", cp < start))
    if cp < start:
        text = "data-parallel ranks and tokens divide by a larger CP"
        needs.append(holds(text, wider_cp(run) is not None, "more ranks, or a sequence of another length"))
    return tuple(needs)


# ---- more or fewer cuts ----


def more_ranks(run: Run) -> Change:
    """Twice the EP inside the domain, else twice the stages (N where PP is unknown)."""
    if ep := wider_ep(run):
        return Change({EP: ep})
    stages = deeper_pp(run) or (None if run.config.pp else "N")
    return Change({PP: stages}) if stages else Change()


def cut_further(run: Run) -> tuple[Precondition, ...]:
    """A reason to cut further, and sizes that divide."""
    modules, pp = run.active.recompute_modules, run.config.pp
    tried = True if run.active.recompute_full else None if modules is None else bool(modules)
    sizes = (run.config.ep, run.config.expert_tensor_size, run.config.nvlink_domain)
    told = True if run.active.moe is False or None not in sizes else None
    needs = (
        holds(
            "expandable segments and selective recompute were tried first",
            tried,
            "a run with MEM-1 and MEM-2 that still does not fit",
        ),
        holds("memory has no room left", run.config.memory_tight, told_by="--memory-tight"),
        holds("EP, ETP and the NVLink domain are known", told, told_by="--ep, --etp and --nvlink-domain"),
    )
    if ep := wider_ep(run):
        return (*needs, _divides_experts(run, ep))
    known = run.config.positive("num_layers") is not None and pp is not None
    fit = holds(
        "a layout of stages and virtual stages fits the layers",
        deeper_pp(run) is not None if known else None,
        "more ranks, or a layout of unequal stages",
        "COM-6, or num_layers",
    )
    return (*needs, fit)


def _divides_experts(run: Run, ep: int) -> Precondition:
    told = "num_moe_experts of the configuration"
    return holds(f"EP {ep} divides the experts", experts_divide(run, ep), told_by=told)


def fewer_ranks(run: Run) -> Change:
    """The guide's CP where there is more, else half the TP, else half the stages; one of them at a time."""
    length, cp = sequence_length(run), run.config.cp
    if length is not None and cp is not None and cp > guided_cp(length) and is_far(cp, length):
        return Change({CP: guided_cp(length)})
    if half := _half_tp(run):
        return Change(half)
    stages = fewer_stages(run)
    if stages is None:
        return Change()
    none: dict[str, Value] = {VIRTUAL_STAGES: None} if stages == 1 and run.config.vpp else {}
    return Change({PP: stages, **none})


def room_to_halve(run: Run) -> tuple[Precondition, ...]:
    """Room, and something to give back."""
    sizes = (run.config.tp, run.config.pp, run.config.cp)
    fact = None if None in sizes else bool(fewer_ranks(run).set)
    text = f"a rank uses at most {chosen(ROOM_TO_HALVE.value)} of its memory"
    return (
        holds(text, has_room_to_halve(run), told_by=ASK_MEMORY, blocks=True),
        holds("TP, PP or CP can be smaller", fact, told_by="--tp, --pp and --cp", blocks=True),
    )


# ---- more work in a launch ----


def larger_launches(run: Run) -> Change:
    """Twice the micro-batch (2N of the N there is), and half the tensor parallelism where there is some."""
    return Change({**_doubled(run), **_half_tp(run)})


def _doubled(run: Run) -> dict[str, Value]:
    return {MICRO_BATCH: doubled_micro_batch(run) or "2N"}


def _half_tp(run: Run) -> dict[str, Value]:
    """Half the tensor parallelism, TP/2 where it is unknown; nothing where it cannot go down.

    It does not go to 1 where its overlap is on, which wants more.
    """
    tp = run.config.tp
    if run.config.tensor_parallel is not True or (tp is not None and tp % 2):
        return {}
    if tp == 2 and run.active.tp_overlap:
        return {}
    half: Value = tp // 2 if tp else "TP/2"
    alone = half == 1 and run.config.on("sequence_parallel")
    off: dict[str, Value] = {"sequence_parallel": False} if alone else {}
    return {TP: half, **off}


def short_kernels(run: Run) -> tuple[Precondition, ...]:
    """Short kernels, and memory. What a larger micro-batch takes cannot be told from the peak alone."""
    short = run.active.short_kernel_frac
    fact = None if short is None else short > SHORT.value
    text = f"more than {chosen(SHORT.value)} of the kernels run under 10 us"
    told = "record kernels, not whole graphs"
    divides = _divides_batch(run, ranks_times=2 if _half_tp(run) else 1)
    return (holds(text, fact, told_by=told), *head_room(run), *divides)


def _divides_batch(run: Run, ranks_times: int = 1) -> tuple[Precondition, ...]:
    """The global batch divides, where sizes are known; `ranks_times`: how often as many ranks share it."""
    divides = batch_divides(run, ranks_times)
    if divides is None:
        return ()
    text = "twice the micro-batch, over all data-parallel ranks, divides the global batch"
    return (holds(text, divides, "global_batch_size of the configuration"),)


def larger_shapes(run: Run) -> Change:
    """ETP 1 where experts are cut; else twice the EP inside the domain; else twice the micro-batch."""
    if _experts_cut(run):
        return Change({ETP: 1})
    ep = wider_ep(run)
    return Change({EP: ep} if ep else _doubled(run))


def _experts_cut(run: Run) -> bool:
    return run.active.moe is not False and (run.config.expert_tensor_size or 1) > 1


def shapes_can_grow(run: Run) -> tuple[Precondition, ...]:
    """What each of the three changes needs; memory is what a larger micro-batch takes."""
    cut = _experts_cut(run)
    if not cut and (ep := wider_ep(run)):
        return (_divides_experts(run, ep),)
    return *head_room(run), *(() if cut else _divides_batch(run))
