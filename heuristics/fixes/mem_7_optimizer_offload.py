"""MEM-7: optimizer state on the host.

Changes where a part of the optimizer's state lives and steps: in host memory, by the CPU. Helps where the
run stops in the optimizer step or its state keeps activations out; the step gets slower, the less so the
longer it is. Forbidden without the precision-aware and the distributed optimizer, with Megatron-FSDP 2, and
with FP8 parameter gather of any recipe but delayed scaling.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, distributed_optimizer, holds, training
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.precision import BITS, bits_of

FRACTION: Final = Limit(
    0.25,
    "fraction of the optimizer's state",
    (
        "Megatron-Bridge skill perf-cpu-offloading: 25 to 50 % at moderate pressure; every further 25 % "
        "cost as much again"
    ),
)
_OFFLOAD: Final = "optimizer.optimizer_cpu_offload"


def change(run: Run) -> Change:
    """A quarter of the state first, its copies overlapped."""
    del run
    return Change(
        {
            _OFFLOAD: True,
            "optimizer.optimizer_offload_fraction": FRACTION.value,
            "optimizer.overlap_cpu_optimizer_d2h_h2d": True,
            "optimizer.use_precision_aware_optimizer": True,
        }
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-LM asserts."""
    return (
        *already(run, _OFFLOAD),
        training(run),
        distributed_optimizer(run),
        holds(
            "parameters are not gathered in FP8, or the recipe is delayed scaling",
            _gathers(run),
            "--fp8-param-gather left out",
            "--precision, or --fp8-param-gather left out",
        ),
    )


def _gathers(run: Run) -> bool | None:
    """Parameters are gathered in FP8 only where that is asked for, whatever the precision."""
    bits = bits_of(run.precision)
    allowed = run.precision == "fp8_delayed" or (bits is not None and bits > BITS["mxfp8"])
    gathered = run.config.on("ddp.fp8_param_gather", "mixed_precision.fp8_param_gather")
    return True if allowed or gathered is False else None


FIX: Final = Fix(
    id="MEM-7",
    wall="memory",
    title="Keep a part of the optimizer's state on the host",
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here. Papers and Megatron-Bridge's docs call it "
        "--offload-optimizer-states, which is no flag of Megatron-LM"
    ),
    gains=(
        Gain(
            "-3.8 GB per quarter (47.2 to 32.0 GB at 100 %), with the step 1.9, 2.5, 3.2 and 4.2 times as "
            "long: Qwen3-30B-A3B, 16 H100, TP2 PP2 EP4",
            "Megatron-Bridge, skills/nemo-mbridge-perf-cpu-offloading/card.yaml",
        ),
        Gain(
            "15 to 20 GB per GPU for 0.1 to 0.2 s a step: DeepSeek-V3, best on GB200",
            "Megatron-Bridge, skills/nemo-mbridge-perf-moe-optimization-workflow/card.yaml at 067f987d",
        ),
    ),
    side_effects=(
        (
            "the step gets slower by the CPU's optimizer, badly so on short steps; overlapping copies saved "
            "about 7 % of it"
        ),
        "host memory fills",
    ),
    excludes=("MEM-4", "CMP-3", "HST-8", "HST-9"),
    verify="copies to and from the host only around the optimizer; the step's growth is what was accepted",
    sources=(
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge skill perf-cpu-offloading and src/megatron/bridge/training/config.py at 067f987d",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)
