"""HST-2: Python's garbage collection between steps, on all ranks at once.

Changes when Python collects: every N steps instead of when its counters say so, which differs by rank. Helps
where single steps are long on one rank while the others wait in communication. Nothing forbids it; too rare,
and host memory grows.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, holds
from heuristics.run.run import Run
from traces.limits import Limit

INTERVAL: Final = Limit(
    10,
    "steps",
    "Megatron-Bridge, docs/training/moe-optimization.md; its harness and Megatron-LM's table have 100",
)


def change(run: Run) -> Change:
    """The same on every run: the collector's interval is not a matter of the model."""
    del run
    return Change({"train.manual_gc": True, "train.manual_gc_interval": int(INTERVAL.value)})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Collections within steps."""
    collects = run.seen_ns("host_overhead", ("gc",))
    return (*already(run, "train.manual_gc", active=False if collects else None), *_within_steps(run))


def _within_steps(run: Run) -> tuple[Precondition, ...]:
    """A range or samples of a recording show it; by figures alone long pauses only make it likely."""
    unseen = None if run.active.recorder is None else False
    collects = True if run.seen_ns("host_overhead", ("gc",)) else unseen
    text = "the collector stops the host within steps"
    return (holds(text, collects, told_by="NVTX ranges around collections"),)


def _of_run(fix: Fix, run: Run) -> Fix:
    """By figures alone, collections that have none of their own are somewhere in Python's time."""
    named = {*(run.cost_by_kind_ns.get("host_overhead") or ())} & {*fix.kinds}
    if run.active.recorder is not None or named:
        return fix
    return replace(fix, kinds=(*fix.kinds, "python"), direct=fix.kinds)


FIX: Final = Fix(
    id="HST-2",
    wall="host_overhead",
    title="Collect Python's garbage at fixed steps on all ranks",
    kinds=("gc", "long_python_pauses"),
    change=change,
    advice=advice,
    of_run=_of_run,
    versions=(
        "every release here; the interval is 10 or 100 steps in NVIDIA's guides. Megatron-Bridge's "
        "performance harness sets 100 itself"
    ),
    side_effects=("host memory grows between collections",),
    verify="no long host gap within a step; what is left of them falls on all ranks together",
    sources=(
        (
            "Megatron-LM, megatron/training/config/training_config.py and "
            "megatron/core/transformer/moe/README.md at d98e8a64"
        ),
        "Megatron-Bridge, docs/training/moe-optimization.md and docs/performance-guide.md at 067f987d",
    ),
    changes=lambda run: ("collection_at_edges",),
    pytorch=Form(
        title="Collect Python's garbage at fixed steps on all ranks",
        code=(
            "gc.disable() (before the first step)",
            f"gc.collect() (every {int(INTERVAL.value)} steps, on all ranks)",
        ),
        verify="no long host gap within a step; what is left of them falls on all ranks together",
        sources=("Python, library reference, gc",),
        side_effects=("host memory grows between collections",),
        advice=_within_steps,
        changes=lambda run: ("collection_at_edges",),
    ),
)
