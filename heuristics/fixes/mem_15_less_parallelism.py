"""MEM-15: model parallelism given back where memory has room.

Changes how the model is cut, the other way than MEM-8: no context parallelism for short sequences, then half
the tensor parallelism, then half the stages. Helps where a rank uses little of its memory: kernels grow,
exchanges shrink, and the ranks carry more copies. Forbidden where memory would not hold twice what it holds.
"""

from typing import Final

from heuristics.config.sizes import fewer_stages
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.hst_5_more_work_per_launch import half_tp
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.guides.context_parallel import guided_cp, is_far, sequence_length
from heuristics.guides.memory_use import ASK_MEMORY, ROOM_TO_HALVE, has_room_to_halve
from heuristics.run.run import Run
from traces.settings.settings import Value
from traces.spelling import chosen

_STAGES: Final = "pipeline_model_parallel_size"
_VIRTUAL: Final = "virtual_pipeline_model_parallel_size"


def change(run: Run) -> Change:
    """The guide's CP where there is more, else half the TP, else half the stages; one of them at a time."""
    if cp := _smaller_cp(run):
        return Change({"context_parallel_size": cp})
    if half := half_tp(run):
        return Change(half)
    stages = fewer_stages(run)
    if stages is None:
        return Change()
    none: dict[str, Value] = {_VIRTUAL: None} if stages == 1 and run.config.vpp else {}
    return Change({_STAGES: stages, **none})


def _smaller_cp(run: Run) -> int | None:
    length, cp = sequence_length(run), run.config.cp
    if length is None or cp is None or cp <= guided_cp(length) or not is_far(cp, length):
        return None
    return guided_cp(length)


def advice(run: Run) -> tuple[Precondition, ...]:
    """Room, and something to give back."""
    sizes = (run.config.tp, run.config.pp, run.config.cp)
    fact = None if None in sizes else bool(change(run).set)
    return (
        holds(
            f"a rank uses at most {chosen(ROOM_TO_HALVE.value)} of its memory",
            has_room_to_halve(run),
            told_by=ASK_MEMORY,
            blocks=True,
        ),
        holds("TP, PP or CP can be smaller", fact, told_by="--tp, --pp and --cp", blocks=True),
    )


FIX: Final = Fix(
    id="MEM-15",
    wall="memory",
    with_room=True,
    title="Use less model parallelism",
    change=change,
    advice=advice,
    versions="every Megatron-Core release here",
    gains=(
        Gain(
            "800 to 920 TFLOPS (+15 %) as offload allowed TP2 EP16 to become TP1 EP64: Qwen3-235B",
            "per a digest of arXiv 2603.07685, table 5",
        ),
    ),
    side_effects=(
        "a rank holds up to twice the weights and activations",
        "more data-parallel ranks: their gradients travel further, and the global batch must divide by them",
        "checkpoints change with the parallel sizes",
    ),
    excludes=("MEM-8", "MEM-16"),
    verify="tokens/s a GPU rise, allocated peak per rank rises and stays below the GPU's",
    sources=(
        "Megatron-Bridge skill perf-moe-optimization-workflow at 067f987d",
        "Megatron-Bridge, docs/training/moe-optimization.md at 067f987d",
        "Megatron-Bridge skill perf-parallelism-strategies at 067f987d: no CP below 2K tokens",
    ),
    direct=(),
)
