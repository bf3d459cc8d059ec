"""Two results -> a comparison: comparable, real, why, what changed. The one entry."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.difference.changed import changed
from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.matched import budget_rows
from heuristics.comparison.difference.rows import FEW, Facts, attribute, layers, part_of
from heuristics.comparison.expected import Prediction, judge_expected
from heuristics.comparison.ranks import Pair, compare_runs, index_of, pair_ranks, place_of
from heuristics.comparison.side import mean_delta_ns, side_of
from heuristics.comparison.size import Judged, judge_gate, judge_pairs, judge_size, measure_size
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.result.compared import (
    Comparable,
    Compared,
    ComparedPair,
    ComparedSize,
    Expected,
    Gate,
    Suspect,
)
from heuristics.result.compared_run import ComparedRun
from heuristics.result.known import SCHEMA_VERSION, Tool, known
from heuristics.result.result import Result
from heuristics.result.side import Side
from traces.missing import Missing

_NO_BASE: Final = Missing("", "the steps of base take no time", "record base again")


def compare(
    base: Result,
    new: Result,
    gpus: Sequence[int | None] = (None, None),
    gate_frac: float | None = None,
    predictions: Sequence[Prediction] = (),
) -> Compared:
    """Compare two results with at least one rank each; `gpus`: the CUDA device of each side, None for any.
    `predictions`: what the user expects of fixes, in place of the plan of base.

    Who asked fills in the version of the tool, warnings and the command. Raises `EmptySelection` where a side
    has no such GPU.
    """
    pairs = pair_ranks(base, new, *gpus)
    base_rank, new_rank = pairs[0].base, pairs[0].new
    facts = with_explained(
        Facts(
            base,
            new,
            base_rank,
            new_rank,
            attribution=attribute(base_rank, new_rank),
            layers=layers(base_rank, new_rank),
            kernels=compare_kernels(base_rank, new_rank),
            changed=changed(base, new, base_rank, new_rank),
        )
    )
    comparable = judge_comparable(base, new, base_rank, new_rank)
    base_log, new_log = known(base.log), known(new.log)
    size = measure_size(base_rank, new_rank, base_log, new_log)
    logged = [len(log.iterations_ns) if log else 0 for log in (base_log, new_log)]
    judged = judge_pairs(judge_size(size, comparable, base_rank, new_rank, (logged[0], logged[1])), pairs)
    return whole(
        facts,
        pairs,
        comparable,
        size,
        judged,
        suspects=find_suspects(facts),
        gate=None if gate_frac is None else judge_gate(size, judged, gate_frac),
        expected=judge_expected(facts, size, judged, predictions),
        run=compare_runs(base, new, pairs),
    )


def whole(
    facts: Facts,
    pairs: Sequence[Pair],
    comparable: Comparable,
    size: ComparedSize,
    judged: Judged,
    *,
    suspects: tuple[Suspect, ...] = (),
    gate: Gate | None = None,
    expected: tuple[Expected, ...] = (),
    run: ComparedRun | None = None,
) -> Compared:
    """What was found and judged as one comparison."""
    told, (base, new) = facts.attribution, _sides(facts)
    guides = base.guidance, new.guidance
    return Compared(
        schema_version=SCHEMA_VERSION,
        tool=Tool("moe-diag", "", guides[0] if guides[0] == guides[1] else None),
        kind="comparison",
        warnings=(),
        missing=(),
        redacted=True,
        verdict=judged.verdict,
        because=judged.because,
        record=judged.record,
        comparable=comparable,
        base=base,
        new=new,
        size=size,
        step_delta_ns=told.step_delta_ns,
        step_delta_frac=part_of(told.step_delta_ns, base.step_ns) if base.step_ns else _NO_BASE,
        step_delta_ci95_ns=size.ends_ns or FEW,
        attribution=told.rows,
        reasons=told.reasons,
        modules=told.modules,
        layers=facts.layers,
        kernels=facts.kernels,
        changed=facts.changed,
        suspects=suspects,
        pairs=tuple(
            ComparedPair(
                base=place_of(facts.base, index_of(facts.base, pair.base)),
                new=place_of(facts.new, index_of(facts.new, pair.new)),
                by=pair.by,
                step_delta_ns=mean_delta_ns(pair.base, pair.new),
            )
            for pair in pairs
        ),
        gate=gate,
        expected=expected,
        run=UNSET if run is None else run,
    )


def _sides(facts: Facts) -> tuple[Side, Side]:
    """Both sides; their steps are made of the same rows, those that only one has included."""
    rows = budget_rows(facts.base_rank, facts.new_rank)
    named = {one.row for one in facts.attribution.rows}
    return (
        side_of(facts.base, facts.base_rank, {one.row: one.base.mean_ns for one in rows}, named),
        side_of(facts.new, facts.new_rank, {one.row: one.new.mean_ns for one in rows}, named),
    )
