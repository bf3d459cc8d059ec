"""Two results -> a comparison: comparable, real, why, what changed. The one entry."""

from collections.abc import Sequence
from dataclasses import dataclass

from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.difference.changed import changed
from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.rows import attribute, layers
from heuristics.comparison.expected import judge_expected
from heuristics.comparison.facts import Facts
from heuristics.comparison.pairs import Pair, pair_ranks
from heuristics.comparison.ranks import compare_runs
from heuristics.comparison.size import Judged, Size, judge_gate, judge_pairs, judge_size, measure_size
from heuristics.comparison.suspects import can_explain, find_suspects
from heuristics.comparison.taken import Prediction
from heuristics.result.compared import Comparable, Expected, Gate, Suspect
from heuristics.result.compared_run import ComparedRun
from heuristics.result.result import Result
from traces.missing import known


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `moe-diag compare` finds. `explained`: per entry of `facts.changed`, the rows it can explain."""

    facts: Facts
    pairs: tuple[Pair, ...]
    comparable: Comparable
    size: Size
    judged: Judged
    explained: tuple[tuple[str, ...], ...]
    suspects: tuple[Suspect, ...]
    gate: Gate | None = None
    expected: tuple[Expected, ...] = ()
    run: ComparedRun | None = None


def compare(
    base: Result,
    new: Result,
    gpus: Sequence[int | None] = (None, None),
    gate_frac: float | None = None,
    predictions: Sequence[Prediction] = (),
) -> Comparison:
    """Compare two results with at least one rank each; `gpus`: the CUDA device of each side, None for any.
    `predictions`: what the user expects of fixes, in place of the plan of base.

    Raises `EmptySelection` where a side has no such GPU.
    """
    pairs = pair_ranks(base, new, *gpus)
    base_rank, new_rank = pairs[0].base, pairs[0].new
    facts = Facts(
        base,
        new,
        base_rank,
        new_rank,
        attribution=attribute(base_rank, new_rank),
        layers=layers(base_rank, new_rank),
        kernels=compare_kernels(base_rank, new_rank),
        changed=changed(base, new, base_rank, new_rank),
    )
    comparable = judge_comparable(base, new, base_rank, new_rank)
    size = measure_size(base_rank, new_rank, known(base.log), known(new.log))
    judged = judge_pairs(judge_size(size, comparable, base_rank, new_rank), pairs)
    explained = can_explain(facts)
    return Comparison(
        facts=facts,
        pairs=pairs,
        comparable=comparable,
        size=size,
        judged=judged,
        explained=explained,
        suspects=find_suspects(facts),
        gate=None if gate_frac is None else judge_gate(size, judged, gate_frac),
        expected=judge_expected(facts, size, judged, explained, predictions),
        run=compare_runs(base, new, pairs),
    )
