"""MEM-16: long sequences cut over context-parallel ranks.

Changes how many ranks share a sequence, so that each holds fewer tokens' activations. Helps where sequences
are long: attention's memory dominates from about 8K tokens on. NVIDIA's guides disagree on how many ranks:
the one on MoE takes about one for 4096 tokens, the general one 2 up to 32K and 4 to 8 above. Data-parallel
ranks are given up for it; experts keep theirs.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.guides.memory_use import ASK_MEMORY, is_tight
from heuristics.guides.parallel import LONG, guided_cp, sequence_length, wider_cp
from heuristics.run.run import Run
from traces.settings.settings import Value


def change(run: Run) -> Change:
    """The CP that the length asks for, as far as ranks divide; twice where the length is unknown, else N."""
    cp = run.config.cp
    known = sequence_length(run) is not None
    size: Value = "N" if cp is None else wider_cp(run) if known else 2 * cp
    return Change({"context_parallel_size": size}) if size else Change()


def advice(run: Run) -> tuple[Precondition, ...]:
    """A long sequence, memory that it fills, and ranks to give up."""
    length, cp = sequence_length(run), run.config.cp
    needs = [
        holds(
            f"sequences are long: {LONG.value:.0f} tokens or more",
            None if length is None else length >= LONG.value,
            told_by="seq_length of the configuration",
            blocks=True,
        ),
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


FIX: Final = Fix(
    id="MEM-16",
    wall="memory",
    title="Split long sequences over more context-parallel ranks",
    change=change,
    advice=advice,
    versions="every Megatron-Core release here; tokens must divide by twice the CP",
    gains=(
        Gain(
            "about 300 TFLOPS at 4K tokens on CP1, and as many at 128K on CP32: DeepSeek-V3, 256 H100, FP8 "
            "blockwise, DeepEP",
            "Megatron-Bridge, skills/nemo-mbridge-perf-moe-long-context/card.yaml at 067f987d",
        ),
    ),
    side_effects=(
        "data parallelism falls by as much, and with it the global batch of as many microbatches",
        "keys and values travel between ranks: COM-7 chooses how",
        "without long sequences it only adds communication",
    ),
    excludes=("MEM-15",),
    verify="allocated peak per rank falls, the exchange of keys and values lies under attention",
    sources=(
        "Megatron-Bridge skill perf-moe-long-context at 067f987d: CP is about the length by 4096",
        "Megatron-Bridge skill perf-parallelism-strategies at 067f987d: CP2 for 8K to 32K, CP4 to 8 above",
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
    ),
)
