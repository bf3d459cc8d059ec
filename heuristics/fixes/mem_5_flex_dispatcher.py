"""MEM-5: a flex dispatcher, for its memory.

Changes NCCL's all-to-all for DeepEP or HybridEP, which send tokens without an explicit copy of each for
every expert it goes to: the global permute and its buffer go. Helps where memory is short and the
dispatcher is alltoall; the same change as COM-2. Forbidden by GPU, version, routing and a missing package,
as there.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes import com_2_dispatcher
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not, mostly_moving
from heuristics.guides.dispatcher import choose_dispatcher
from heuristics.run.run import Run

_FLEX: Final = ("deepep", "hybridep", "ncclep")


def _short_of_memory(run: Run) -> Run:
    """The run as the dispatcher guide is asked here: whoever pays for memory is short of it."""
    tight = run.config.memory_tight is not False
    return replace(run, given=replace(run.given, memory_tight=tight))


def change(run: Run) -> Change:
    """As COM-2."""
    return com_2_dispatcher.change(_short_of_memory(run))


def advice(run: Run) -> tuple[Precondition, ...]:
    """As COM-2, but a flex backend in place of another kind, and waiting does not matter."""
    tight = _short_of_memory(run)
    backend, now = com_2_dispatcher.backend_to_set(tight), run.active.dispatcher
    return (
        is_not(
            "no flex dispatcher runs already",
            None if now == "unknown" else now in _FLEX,
            told_by="record kernel names (not whole graphs)",
        ),
        holds(
            f"the dispatcher guide names a flex backend here ({choose_dispatcher(tight).rule})",
            backend in _FLEX,
            "--gpu-model, --ep and --stage",
        ),
        *(need for need in com_2_dispatcher.advice(tight) if need != mostly_moving(tight)),
    )


FIX: Final = Fix(
    id="MEM-5",
    wall="memory",
    title="Use a dispatcher without a buffer for the global permute",
    change=change,
    advice=advice,
    versions=com_2_dispatcher.FIX.versions,
    gains=(
        Gain(
            (
                "often noticeably better memory head-room than alltoall, no figure published: Qwen3 235B on"
                " GB200, HybridEP"
            ),
            "Megatron-Bridge skill perf-moe-dispatcher-selection",
        ),
        Gain(
            "lower peak, no figure published: DeepSeek-V3, 256 GB200, DeepEP",
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8, 2.2.1",
        ),
    ),
    side_effects=com_2_dispatcher.FIX.side_effects,
    excludes=("COM-2", "COM-8"),
    verify=(
        "half as many permute kernels, kernels of the new backend in place of NCCL SendRecv, lower "
        "allocated peak"
    ),
    sources=com_2_dispatcher.FIX.sources,
    same_as="COM-2",
    arms=lambda run: com_2_dispatcher.arms(_short_of_memory(run)),
    wins=("recompute", "allocator"),  # with room, both can go
)
