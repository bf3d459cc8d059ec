"""Behind the first screen of a comparison: both sides, every row, kernel, layer, pair, ranks that
moved.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from msgspec import UNSET

from heuristics.result.compared import Compared, KernelDelta, LayerDelta, Side
from heuristics.result.compared_ranks import ComparedRank, ComparedRun, LateState, Place
from heuristics.result.compared_runs import Whole
from reports.content.blocks import (
    Blocks,
    Cells,
    Code,
    Command,
    Fold,
    Sentence,
    Table,
    Term,
    Tone,
    items,
    row,
    words,
)
from reports.content.comparison.changed import reasons
from reports.content.comparison.difference import (
    NOISE,
    both,
    module_name,
    moved,
    named,
    per_step,
    row_table,
    unit,
)
from reports.content.comparison.exchanged import exchange_table
from reports.content.names import (
    gpu_of,
    kernel_code,
    name_of,
    optional,
    sentence,
    statement,
    who,
)
from reports.content.tables import shaped
from reports.measures import words_of
from reports.redaction import redaction_words
from reports.rows import each, those
from traces.missing import OrMissing, known
from traces.sections.cause import Cause
from traces.spelling import adding_up, counted, milliseconds, percent, places, signed

_KERNEL: Final = 48
"""Letters of a kernel's name: those of one kind differ in their ends."""
_TONES: Final = {
    LateState.APPEARED: Tone.BAD,
    LateState.GONE: Tone.GOOD,
    LateState.OTHER: Tone.NOTICE,
}


def ranks(compared: Compared) -> Iterator[Sentence]:
    """Two lines where both sides hold several ranks."""
    run = compared.run
    if not run:
        return
    sides = both(counted(run.base_ranks, "rank"), counted(run.new_ranks, "rank"))
    parts = (sides, *_of_run(compared, run))
    yield statement(f"{'; '.join(parts)}.", "Ranks", whole=True)
    late = run.late
    if not (late.base_cause or late.new_cause):
        return
    base, new = _late(late.base, late.base_cause), _late(late.new, late.new_cause)
    late_words = words(words_of("late_state")[late.state].format(base=base, new=new))
    yield Sentence(late_words, "Straggler", _TONES.get(late.state, Tone.PLAIN), whole=True)


def _of_run(compared: Compared, run: ComparedRun) -> Iterator[str]:
    if any(known(group.step_delta_ns) is not None for group in run.groups):
        of = "" if len(run.groups) == 1 else " of groups"
        yield f"median step{of} {', '.join(map(_moved, each(run.groups, 'step_delta_ns')))} ms"
    for first in run.ranks[:1]:
        if known(first.step_delta_ns) is None:
            continue
        most = f"most changed: {_name(compared, first)}: step {_moved(first.step_delta_ns)} ms"
        if (waited := known(first.caused_delta_ns)) is not None:
            most = f"{most}, others together wait {_moved(waited)} ms for it"
        yield most
    if not run.ranks:
        yield "no rank of one run does the work of a rank of the other"
    base, new = known(run.base_waiting_frac), known(run.new_waiting_frac)
    if base is not None and new is not None:
        yield f"waiting {both(percent(base), percent(new))} of communication time"


def _name(compared: Compared, rank: ComparedRank) -> str:
    for new in those(each(compared.pairs, "new"), index=rank.new_index):
        return who(new)
    return f"rank {rank.rank}"


def _late(place: Place | None, cause: Cause | None) -> str:
    if cause is None:
        return "unknown"
    return optional("{}, ", place, who) + name_of(cause)


def _moved(delta_ns: OrMissing[int]) -> str:
    return moved(delta_ns).text or "unknown"


def details(compared: Compared) -> Iterator[Fold]:
    """Folds, the most asked for first; none that would be empty."""
    run = compared.run
    base = []
    if runs := compared.size.between_runs:
        base = [
            (Code(recording.name), f"{recording.count:,}", milliseconds(recording.mean_ns))
            for recording in runs.runs
        ]
    whole = known(compared.whole)
    tables = {
        "whole": whole and whole_table(whole),
        "runs": shaped("base_recordings", base),
        "exchanged": exchange_table(compared),
        "kernels": shaped("changed_kernels", map(_kernel, compared.kernels)),
        "reasons": row_table(compared.reasons),
        "modules": row_table(compared.modules, module_name),
        "layers": shaped("changed_layers", map(_layer, compared.layers)),
        "pairs": _pairs(compared),
        "ranks": shaped("matched_ranks", map(partial(_rank, compared), run.ranks if run else ())),
    }
    gaps = [
        words(Term(gap.path), f": {gap.reason}. To measure: {gap.cure}") for gap in compared.missing
    ]
    folds = {"sides": [_sides(compared)], "rows": _rows(compared)}
    for id_, shown in tables.items():
        if shown and shown.rows:
            folds[id_] = [shown]
    folds |= {"missing": items("", gaps), "about": _about(compared)}
    for id_, blocks in folds.items():
        if inside := tuple(blocks):
            title = words_of("compared_fold")[id_].format(unit=unit(compared))
            yield Fold(title, inside, id_)


def _sides(compared: Compared) -> Table:
    base, new = _of_side(compared.base), _of_side(compared.new)
    return shaped("sides", zip(base, base.values(), new.values(), strict=True))


def _of_side(side: Side) -> dict[str, str]:
    return {
        "GPU": gpu_of(side),
        "rank": who(side),
        "steps": f"{side.steps.count}, {words_of('steps_by')[side.steps.source]}",
        "steps left out": reasons(side.steps.dropped),
        "mean step or window, ms": milliseconds(side.step_ns),
        "median step, ms": _ms(side.steps.median_ns),
        "shortest step, ms": _ms(side.steps.min_ns),
        "longest step, ms": _ms(side.steps.max_ns),
        "training log": _log(side),
        "bottleneck of this run alone": _wall(side),
    }


def whole_table(whole: Whole) -> Table:
    """Every part of both sides and their sum: each column adds up as printed."""
    decimals = places(max(map(abs, (whole.base_ns, whole.new_ns, whole.delta_ns))))
    base, all_base = _column(whole, "base_ns", decimals)
    new, all_new = _column(whole, "new_ns", decimals)
    change, all_change = _column(whole, "delta_ns", decimals)
    rows = []
    for part, before, after, moved_by in zip(whole.rows, base, new, change, strict=True):
        counts = optional("{:,}", part.base_count, int), optional("{:,}", part.new_count, int)
        figures = (counts[0], before, counts[1], after)
        rows.append((words_of("recorded_part")[part.part], *figures, signed(moved_by)))
    total = row(("whole recording", "", all_base, "", all_new, signed(all_change)))
    return replace(shaped("whole_recording", rows), total=total)


def _column(whole: Whole, field: str, decimals: int) -> tuple[list[str], str]:
    """Times and their sum; the largest takes what rounding leaves over."""
    times_ns = each(whole.rows, field)
    largest = max(range(len(times_ns)), key=lambda at: abs(times_ns[at]))
    other_times_ns = [*times_ns[:largest], *times_ns[largest + 1 :]]
    shown, largest_text, total = adding_up(other_times_ns, getattr(whole, field), decimals)
    return [*shown[:largest], largest_text, *shown[largest:]], total


def _ms(time_ns: OrMissing[int]) -> str:
    return optional("{}", time_ns, milliseconds)


def _log(side: Side) -> str:
    log = side.log
    if not log:
        return ""
    return f"{log.name}: {log.count:,} iterations, mean {_ms(log.mean_ns)} ms"


def _wall(side: Side) -> str:
    wall = side.wall
    if not wall:
        if side.walls_told:
            return "none"
        return "not measurable"
    return f"{name_of(wall)}, confidence {side.confidence or 'unknown'}"


def _rows(compared: Compared) -> Blocks:
    yield row_table(compared.attribution)
    for entry in compared.attribution:
        if entry.row == NOISE and entry.parts:
            differ = words(
                "differ by no more than steps vary: ", named(entry.parts, len(entry.parts))
            )
            yield Sentence(differ, "Rows in noise")


def _kernel(kernel: KernelDelta) -> Cells:
    counts = (per_step(kernel.base_count), per_step(kernel.new_count))
    times = (kernel.base_each_ns, kernel.new_each_ns)
    grids = ("x".join(map(str, grid or ())) for grid in (kernel.base_grid, kernel.new_grid))
    how = words_of("kernel_change")[kernel.change]
    what = kernel_code(kernel.name, _KERNEL), Term(kernel.key), how, moved(kernel.delta_ns)
    return (*what, *counts, *map(_ms, times), *grids)


def _layer(layer: LayerDelta) -> Cells:
    lengths = milliseconds(layer.base_ns), milliseconds(layer.new_ns), moved(layer.delta_ns)
    return (str(layer.layer), *lengths, Term(layer.module), moved(layer.module_delta_ns))


def _pairs(compared: Compared) -> Table:
    pairs = compared.pairs if len(compared.pairs) > 1 else ()
    rows = [(who(pair.base), who(pair.new), pair.by, moved(pair.step_delta_ns)) for pair in pairs]
    return shaped("pairs", rows)


def _rank(compared: Compared, rank: ComparedRank) -> Cells:
    moved_ns = rank.step_delta_ns, rank.waited_delta_ns, rank.caused_delta_ns
    return _name(compared, rank), rank.by, *map(_moved, moved_ns)


def _about(compared: Compared) -> Blocks:
    for warning in compared.warnings[1:]:
        yield statement(sentence(warning), "Warning")
    tool, rules = compared.tool, optional(", guidance {}", compared.tool.guidance)
    yield statement(f"{tool.name} {tool.version}{rules}, document {compared.schema_version}.")
    yield statement(redaction_words(compared.redacted))
    if compared.command is not UNSET:
        yield Command("To make this report again:", compared.command)
