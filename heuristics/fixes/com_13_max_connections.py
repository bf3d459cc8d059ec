"""COM-13: as many hardware queues as the run's overlaps want.

Changes CUDA_DEVICE_MAX_CONNECTIONS. With one queue kernels start in the order they were launched, which
overlap of TP and CP before Blackwell relies on; everything that is to run beside something else wants more.
Helps where the variable is known to be set for another kind of run. The other fixes that need it set it
themselves.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.parallel import connections
from heuristics.run.run import Run

_NAME: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
_DENSE: Final = ("dp_reduce_scatter", "dp_all_gather", "all_reduce", "tp", "cp")


def change(run: Run) -> Change:
    """What the run as it is wants."""
    return Change({f"env.{_NAME}": str(connections(run))})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Another value than the run wants."""
    now, wanted = run.config.first(f"env.{_NAME}"), str(connections(run))
    fact = None if now is None else str(now) != wanted
    told = f"{_NAME} in what --config reads"
    return (holds(f"{_NAME} is not {wanted} already", fact, told_by=told, blocks=True),)


def _of_run(fix: Fix, run: Run) -> Fix:
    """Without expert all-to-all where nothing is to run beside it."""
    return replace(fix, kinds=_DENSE) if run.active.ep_overlap is False else fix


FIX: Final = Fix(
    id="COM-13",
    wall="communication",
    title="Set the number of hardware queues",
    kinds=(*EP_KINDS, *_DENSE),  # what overlaps compute; a stage that waits for the pipeline does not
    change=change,
    advice=advice,
    versions=(
        "any release. Before Blackwell Megatron-LM asserts 1 with TP or CP above 1, unless expert all-to-all "
        "is overlapped (it warns) or FSDP runs (it asserts another value); on Blackwell nothing asks for 1"
    ),
    side_effects=("before Blackwell, overlap of TP or CP and of expert all-to-all cannot both have theirs",),
    excludes=("COM-1", "COM-5", "MEM-10"),
    of_run=_of_run,
    verify="kernels of streams that do not wait for each other run at the same time",
    sources=(
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d",
        "Megatron-Bridge skill perf-moe-hardware-configs",
    ),
)
