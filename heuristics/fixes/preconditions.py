"""The forms a precondition takes. What is unknown stays unknown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from heuristics.config.versions import PACKAGE_NAMES, Package, numbers
from heuristics.fixes.precondition import Precondition, Release, State
from heuristics.run.repairs import REPAIRS
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value
from traces.spelling import chosen

WAITING: Final = Limit(
    0.5,
    "fraction of the expert all-to-all",
    "ours: more waiting than moving, so a faster transport touches the smaller part",
)


def holds(
    text: str, fact: bool | None, met_by: str = "", told_by: str = "", blocks: bool = False
) -> Precondition:
    """Met where `fact` is True, unmet where False, unknown where None."""
    state: State = "unknown" if fact is None else "met" if fact else "unmet"
    return Precondition(text, state, met_by, told_by, blocks)


def is_not(
    text: str, fact: bool | None, met_by: str = "", told_by: str = "", blocks: bool = False
) -> Precondition:
    """Met where `fact` is False."""
    return holds(text, None if fact is None else not fact, met_by, told_by, blocks)


def at_least(package: Package, version: str | None, needed: str, beside: str = "") -> Precondition:
    """Met where a version such as "2.8.0" is `needed` or later; letters after the numbers do not count."""
    fact = None if version is None else numbers(version) >= numbers(needed)
    text, told_by = f"{PACKAGE_NAMES[package]}{beside} >= {needed}", f"--{package}-version"
    need = holds(text, fact, f"an upgrade to {needed} or later", told_by)
    return replace(need, release=Release(package, needed))


def te_at_least(run: Run, needed: str, beside: str = "") -> Precondition:
    """A Transformer Engine, asked for beside something else."""
    return at_least("te", run.config.version_text("te"), needed, beside)


def already(run: Run, *knobs: str, active: bool | None = None) -> tuple[Precondition, ...]:
    """The refusal of a fix whose knob is on already; nothing where it is off or unknown.

    Nor where the trace shows that it is not `active` (False): then the fix may be what makes it so.
    """
    return already_so(knobs[0], active is not False and run.config.on(*knobs) is True)


def already_so(knob: str, fact: bool) -> tuple[Precondition, ...]:
    """The refusal of a fix that the configuration has made already, where that is a fact; else nothing."""
    return (Precondition(f"{knob} is not set yet", "unmet"),) if fact else ()


def expert_parallel(run: Run) -> Precondition:
    """Experts spread over ranks."""
    return holds("experts are spread over ranks (EP above 1)", run.config.expert_parallel, told_by="--ep")


def moe_layers(run: Run) -> Precondition:
    """A model with experts."""
    return holds("the model has experts", run.active.moe, told_by="record a whole step")


def grouped_gemm(run: Run) -> Precondition:
    """Experts that run together."""
    return holds("experts run as grouped GEMM", run.active.grouped_gemm, "CMP-1")


def dispatched_by(run: Run, text: str, *dispatchers: str, blocks: bool = False) -> Precondition:
    """One of some dispatchers runs; COM-2 sets it."""
    now = run.active.dispatcher
    return holds(text, None if now == "unknown" else now in dispatchers, "COM-2", blocks=blocks)


def overlapped(run: Run) -> Precondition:
    """EP overlap that is known to run."""
    return holds("expert all-to-all overlap is active", run.active.ep_overlap, "COM-1", blocks=True)


def training(run: Run) -> Precondition:
    """A step with an optimizer."""
    return holds(
        "it is a training step, with an optimizer", run.active.training, told_by="record a whole step"
    )


def distributed_optimizer(run: Run, text: str = "the optimizer is distributed") -> Precondition:
    """The distributed optimizer, or FSDP's."""
    return holds(text, run.config.distributed_optimizer, "--use-distributed-optimizer")


def optimizer_is(run: Run, text: str, *kinds: str) -> Precondition:
    """One of some optimizers."""
    kind = run.config.first("optimizer.optimizer")
    return holds(text, None if kind is None else kind in kinds, "--optimizer adam")


def no_second_fsdp(run: Run) -> Precondition:
    """No Megatron-FSDP of version 2."""
    return is_not("Megatron-FSDP 2 does not run", run.config.second_fsdp, "--megatron-fsdp-version 1")


def no_user_buffers(run: Run) -> Precondition:
    """NCCL allocates its own buffers."""
    cure = "--use-nccl-ub (--nccl_ub) left out of the run"
    return is_not("NCCL user buffers are off", run.config.on("ddp.nccl_ub"), cure)


def te_layers(run: Run, met_by: str = "--transformer-impl transformer_engine") -> Precondition:
    """Layers of Transformer Engine."""
    kind = run.config.first("transformer_impl")
    fact = None if kind is None else kind == "transformer_engine"
    return holds("layers are Transformer Engine's", fact, met_by)


def mostly_moving(run: Run) -> Precondition:
    """The expert all-to-all moves data rather than waits; where it waits, who is late comes first."""
    waiting = run.active.a2a_waiting_frac
    return holds(
        f"waiting is at most {chosen(WAITING.value)} of the expert all-to-all",
        None if waiting is None else waiting <= WAITING.value,
        _ends_waiting(run),
        "record several ranks of a group",
    )


def _ends_waiting(run: Run) -> str:
    """What makes ranks wait less: where the late rank is known its repair, else even routing."""
    if run.late is None:
        return "COM-11"
    return next(iter(REPAIRS[run.late.cause].fixes), "the repair of the late rank")


def head_room(run: Run, needed_bytes: float | None) -> Precondition:
    """Free memory, by what was given, else by the peak the trace shows; None: nobody can say how much.

    A small rest is unknown, not unmet: PyTorch reserves nearly all by design.
    """
    text, shown, tight = "memory has room for it", run.active, run.config.memory_tight
    if run.does_not_fit:
        return holds(f"{text}: the run does not fit", False, "MEM-2")
    if tight is not None:
        return holds(text, not tight, "MEM-2")
    if layer_offload(run):
        return holds(f"{text}: layers are offloaded because memory is short", False, "MEM-6")
    if needed_bytes is None or shown.memory_bytes is None or shown.peak_bytes is None:
        return holds(text, None, told_by="--memory-tight")
    free = shown.memory_bytes - shown.peak_bytes
    return holds(text, True if free >= needed_bytes else None, told_by="--memory-tight")


def static_shapes(run: Run) -> Precondition:
    """Shapes that stay: only the configuration can tell that they do."""
    packed, varies = run.config.packed_sequences, run.config.on("variable_seq_lengths")
    changes = True if packed or varies else False if packed is False and varies is False else None
    return is_not(
        "sequence length and micro-batch size never change, and no packed sequences",
        changes,
        told_by="--packed-sequences, and variable_seq_lengths of the configuration",
    )


def no_layer_offload(run: Run) -> Precondition:
    """Layers kept off the CPU; offload that shows may be the fine-grained one, which is no layer's."""
    return is_not(
        "no layer is offloaded to the CPU",
        layer_offload(run),
        "cpu_offloading=false",
        "cpu_offloading of the configuration",
    )


def layer_offload(run: Run) -> bool | None:
    """Whether whole layers are offloaded: by the configuration, else not where no copies show."""
    configured = run.config.on("cpu_offloading")
    return False if configured is None and run.active.offload is False else configured


def right_topology(run: Run) -> tuple[Precondition, ...]:
    """The wait for COM-3 where HybridEP is told another NVLink domain than there is; else nothing."""
    wrong = run.config.right_topology is False
    return (holds("HybridEP is configured with the right NVLink domain", False, "COM-3"),) if wrong else ()


def larger_batch(run: Run) -> tuple[Precondition, ...]:
    """For a larger batch of plain PyTorch, whose sizes nothing tells."""
    del run
    return (holds("memory has room for a larger batch", None, told_by="torch.cuda.max_memory_reserved()"),)


def unseen_recipe(run: Run, values: Mapping[str, Value]) -> tuple[Precondition, ...]:
    """A check where a recipe of Bridge's scripts, not all of which is known, may have the values already."""
    if run.config.word("launcher.recipe") is None:
        return ()
    known = [knob for knob in values if run.config.known(knob)]
    if len(known) == len(values) or any(run.config.value(knob) != values[knob] for knob in known):
        return ()
    told_by = "--dryrun of Bridge's scripts, which prints its settings"
    return (Precondition("the recipe, which may set it, has it off", "unknown", told_by=told_by, late=True),)
