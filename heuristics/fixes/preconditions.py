"""The forms a precondition takes. What is unknown stays unknown."""

from __future__ import annotations

from typing import Final

from heuristics.config.versions import numbers
from heuristics.fixes.fix import Precondition
from heuristics.run.run import Run
from traces.limits import Limit

WAITING: Final = Limit(
    0.5,
    "fraction of the expert all-to-all",
    "ours: more waiting than moving, so a faster transport touches the smaller part",
)


def holds(text: str, fact: bool | None, cure: str = "") -> Precondition:
    """Met where `fact` is True, unmet where False, unknown where None."""
    return Precondition(text, "unknown" if fact is None else "met" if fact else "unmet", cure)


def is_not(text: str, fact: bool | None, cure: str = "") -> Precondition:
    """Met where `fact` is False."""
    return holds(text, None if fact is None else not fact, cure)


def asked(fact: object, source: str) -> str:
    """Cure of what only a better look can tell: `source` where the fact is unknown (None), else nothing."""
    return source if fact is None else ""


def at_least(what: str, version: str | None, needed: str, cure: str = "") -> Precondition:
    """Met where a version such as "2.8.0" is `needed` or later; letters after the numbers do not count."""
    told = None if version is None else numbers(version) >= numbers(needed)
    return holds(f"{what} >= {needed}", told, cure if told is None else f"an upgrade to {needed} or later")


def already(run: Run, *knobs: str, active: bool | None = None) -> tuple[Precondition, ...]:
    """The refusal of a fix whose knob is on already; nothing where it is off or unknown.

    Nor where the trace shows that it is not `active` (False): then the fix may be what makes it so.
    """
    return already_so(knobs[0], active is not False and run.config.on(*knobs) is True)


def already_so(knob: str, fact: bool) -> tuple[Precondition, ...]:
    """The refusal of a fix that the configuration has made already, where that is a fact; else nothing."""
    return (Precondition(f"{knob} is not already set", "unmet"),) if fact else ()


def evident(text: str, fact: bool | None, cure: str) -> Precondition:
    """Met only where it is known to be so: without that evidence the fix is not to be tried."""
    return Precondition(text, "met" if fact else "unmet", cure)


def expert_parallel(run: Run) -> Precondition:
    """Experts spread over ranks: by what was given, else by a dispatcher that moves tokens between them."""
    spread: bool | None
    if run.config.ep is not None:
        spread = run.config.ep > 1
    elif run.active.moe is False or run.active.dispatcher == "none":
        spread = False
    else:
        spread = run.active.dispatcher in ("alltoall", "deepep", "hybridep", "ncclep") or None
    return holds("experts are spread over ranks (EP above 1)", spread, asked(spread, "--ep"))


def pipeline_parallel(run: Run) -> bool | None:
    """Whether layers are cut into pipeline stages: by what was given, else by their traffic."""
    return run.active.pp_active if run.config.pp is None else run.config.pp > 1


def tensor_parallel(run: Run) -> bool | None:
    """Whether layers are cut across ranks: by what was given, else by their traffic."""
    return run.active.tp_active if run.config.tp is None else run.config.tp > 1


def mostly_moving(run: Run) -> Precondition:
    """The expert all-to-all moves data rather than waits; where it waits, who is late comes first."""
    waiting = run.active.a2a_waiting_frac
    return holds(
        f"waiting is at most {WAITING.value:.0%} of the expert all-to-all",
        None if waiting is None else waiting <= WAITING.value,
        "record several ranks of a group" if waiting is None else "COM-11",
    )


def head_room(run: Run, needed_bytes: float | None) -> Precondition:
    """Free memory, by what was given, else by the peak the trace shows; None: nobody can say how much.

    A small rest is unknown, not unmet: PyTorch reserves nearly all by design.
    """
    text, shown, tight = "memory has room for it", run.active, run.config.memory_tight
    if tight is not None:
        return holds(text, not tight, "MEM-2")
    if layer_offload(run):
        return holds(f"{text}: layers are kept on the CPU for want of it", False, "MEM-6")
    if needed_bytes is None or shown.memory_bytes is None or shown.peak_bytes is None:
        return holds(text, None, "--memory-tight")
    free = shown.memory_bytes - shown.peak_bytes
    return holds(text, True if free >= needed_bytes else None, "--memory-tight")


def static_shapes(run: Run) -> Precondition:
    """Shapes that stay: only the configuration can tell that they do."""
    packed, varies = run.config.packed_sequences, run.config.on("variable_seq_lengths")
    changes = True if packed or varies else False if packed is False and varies is False else None
    return is_not(
        "sequence length and micro-batch size never change, and no packed sequences",
        changes,
        "--packed-sequences, and variable_seq_lengths of the configuration",
    )


def no_layer_offload(run: Run) -> Precondition:
    """Layers kept off the CPU; offload that shows may be the fine-grained one, which is no layer's."""
    cure = "cpu_offloading of the configuration"
    return is_not("no layer is offloaded to the CPU", layer_offload(run), cure)


def layer_offload(run: Run) -> bool | None:
    """Whether whole layers are offloaded: by the configuration, else not where no copies show."""
    configured = run.config.on("cpu_offloading")
    return False if configured is None and run.active.offload is False else configured


def right_topology(run: Run) -> tuple[Precondition, ...]:
    """The wait for COM-3 where HybridEP is told another NVLink domain than there is; else nothing."""
    wrong = run.config.right_topology is False
    return (holds("HybridEP is told the NVLink domain as it is", False, "COM-3"),) if wrong else ()


def kept_in_section(run: Run, *names: str) -> tuple[str, ...]:
    """Overrides that repeat in Bridge's comm_overlap which of these the model alone has on.

    They go with the section's first setting: what a section leaves out it switches off
    (training/comm_overlap.py, CommOverlapConfig.setup).
    """
    if any(knob.startswith("comm_overlap.") for knob in run.settings.by_knob):
        return ()
    return tuple(f"comm_overlap.{name}=true" for name in names if run.config.on(name))
