"""Behind the first screen of a comparison: both sides, every row, kernel, layer, pair, ranks that moved."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.compared import (
    Compared,
    ComparedPair,
    ComparedRank,
    ComparedRun,
    KernelDelta,
    LateState,
    LayerDelta,
    Place,
    Side,
)
from reports.content.blocks import (
    Block,
    Code,
    Column,
    Command,
    Fold,
    Items,
    Quantity,
    Row,
    Sentence,
    Table,
    Term,
    Tone,
    words,
)
from reports.content.comparison.difference import (
    NOISE,
    both,
    ledger_name,
    module_name,
    moved,
    named,
    per_step,
    row_table,
    unit,
)
from reports.content.names import gpu_of, name_of, sentence, who
from reports.redaction import redaction_words
from traces.missing import OrMissing, known
from traces.spelling import counted, milliseconds, percent, signed

_LATE: Final = {
    LateState.APPEARED: "none in base; new: {new}.",
    LateState.GONE: "gone. In base: {base}.",
    LateState.SAME: "the same on both sides: {new}.",
    LateState.OTHER: "another one. Base: {base}; new: {new}.",
    LateState.NONE: "none on either side.",
    LateState.UNKNOWN: "unknown on one side at least. Base: {base}; new: {new}.",
}
_TONES: Final = {LateState.APPEARED: Tone.BAD, LateState.GONE: Tone.GOOD, LateState.OTHER: Tone.NOTICE}


def ranks(compared: Compared) -> Iterator[Sentence]:
    """Two lines where both sides hold several ranks."""
    run = compared.run
    if run is UNSET:
        return
    parts = [both(counted(run.base_ranks, "rank"), counted(run.new_ranks, "rank")), *_groups(run)]
    parts += [*_most(compared, run), *_waiting(run)]
    yield Sentence(words(f"{'; '.join(parts)}."), "Ranks", whole=True)
    late = run.late
    base = _named(known(late.base), late.base_cause is not None and name_of(late.base_cause))
    new = _named(known(late.new), late.new_cause is not None and name_of(late.new_cause))
    said = _LATE[late.state].format(base=base, new=new)
    yield Sentence(words(said), "Late rank", _TONES.get(late.state, Tone.PLAIN), whole=True)


def _groups(run: ComparedRun) -> Iterator[str]:
    """How the median step of each matched group moved."""
    moved = [one.step_delta_ns for one in run.groups]
    if moved:
        of = "" if len(moved) == 1 else " of groups"
        yield f"median step{of} {', '.join(map(_moved, moved))} ms"


def _most(compared: Compared, run: ComparedRun) -> Iterator[str]:
    """The rank that others wait for more, or less, than before; else the one whose step changed most."""
    if not run.ranks:
        yield "no rank of one run does the work of a rank of the other"
        return
    first = run.ranks[0]
    waited = known(first.caused_delta_ns)
    more = "" if waited is None else f", others together wait {_moved(waited)} ms for it"
    yield f"most changed: {_name(compared, first)}: step {_moved(first.step_delta_ns)} ms{more}"


def _waiting(run: ComparedRun) -> Iterator[str]:
    base, new = known(run.base_waiting_frac), known(run.new_waiting_frac)
    if base is not None and new is not None:
        yield f"waiting {both(percent(base), percent(new))} of communication time"


def _name(compared: Compared, one: ComparedRank) -> str:
    found = next((pair.new for pair in compared.pairs if pair.new.index == one.new_index), None)
    return f"rank {one.rank}" if found is None else who(found)


def _named(place: Place | None, cause: str | bool) -> str:
    if not cause:
        return "unknown"
    return str(cause) if place is None else f"{who(place)}, {cause}"


def _moved(delta_ns: OrMissing[int]) -> str:
    value = known(delta_ns)
    return "unknown" if value is None else signed(milliseconds(value))


def ranks_table(compared: Compared) -> Table:
    """Every matched rank; empty where a side is one rank alone."""
    run = compared.run
    heads = ("step", "waited", "others waited for it")
    columns = (Column("rank"), Column("matched by"), *(Column(head, number=True) for head in heads))
    shown = () if run is UNSET else run.ranks
    return Table("", columns, tuple(_row(compared, one) for one in shown))


def _row(compared: Compared, one: ComparedRank) -> Row:
    moved = (one.step_delta_ns, one.waited_delta_ns, one.caused_delta_ns)
    texts = (Quantity(_moved(delta_ns)) for delta_ns in moved)
    return Row((words(_name(compared, one)), words(one.by), *texts))


_CHANGES: Final = {
    "slower": "slower",
    "faster": "faster",
    "more": "more of them",
    "fewer": "fewer of them",
    "new": "only in new",
    "gone": "only in base",
    "grid": "another grid",
}


def details(compared: Compared) -> Iterator[Fold]:
    """Folds, the most asked for first; none that would be empty."""
    yield Fold("Both sides", (_sides(compared),), "sides")
    yield Fold(f"Every row, {unit(compared)}", tuple(_rows(compared)), "rows")
    tables: tuple[tuple[str, str, Table], ...] = (
        (
            "Kernels that differ, ms of work per step (not of wall time)",
            "kernels",
            _kernels(compared.kernels),
        ),
        (f"Why no compute ran, {unit(compared)}", "reasons", row_table(compared.reasons, ledger_name)),
        (
            "MoE modules by pass, ms of wall time per step (may overlap)",
            "modules",
            row_table(compared.modules, module_name),
        ),
        ("MoE layers, ms of wall time per step", "layers", _layers(compared.layers)),
        ("Pairs of ranks, ms per step", "pairs", _pairs(compared.pairs)),
        ("Matched ranks of both runs, change in ms of a mean step", "ranks", ranks_table(compared)),
    )
    yield from (Fold(title, (table,), id_) for title, id_, table in tables if table.rows)
    if compared.missing:
        gaps = (words(Code(one.path), f": {one.reason}. To measure: {one.cure}") for one in compared.missing)
        yield Fold("Not measured", (Items(tuple(gaps)),), "missing")
    yield Fold("About this report", tuple(_about(compared)), "about")


def _sides(compared: Compared) -> Table:
    rows: tuple[tuple[str, Callable[[Side], str]], ...] = (
        ("GPU", gpu_of),
        ("rank", who),
        ("steps", lambda side: f"{side.steps.count}, by {side.steps.source}"),
        ("steps left out", lambda side: "; ".join(side.steps.dropped)),
        ("mean step or window, ms", lambda side: milliseconds(side.step_ns)),
        ("median step, ms", lambda side: _ms(side.steps.median_ns)),
        ("shortest step, ms", lambda side: _ms(side.steps.min_ns)),
        ("longest step, ms", lambda side: _ms(side.steps.max_ns)),
        ("training log", _log),
        ("bottleneck of this run alone", _wall),
    )
    columns = (Column(""), Column("base"), Column("new"))
    sides = (compared.base, compared.new)
    return Table(
        "", columns, tuple(Row((words(name), *(words(of(side)) for side in sides))) for name, of in rows)
    )


def _ms(time_ns: OrMissing[int]) -> str:
    value = known(time_ns)
    return "" if value is None else milliseconds(value)


def _log(side: Side) -> str:
    log = known(side.log)
    return "" if log is None else f"{log.name}: {log.count:,} iterations, mean {_ms(log.mean_ns)} ms"


def _wall(side: Side) -> str:
    wall = known(side.wall)
    if wall is None:
        return "none" if side.walls_told else "not measurable"
    return f"{name_of(wall)}, confidence {known(side.confidence) or 'unknown'}"


def _rows(compared: Compared) -> Iterator[Block]:
    yield row_table(compared.attribution, ledger_name)
    for row in compared.attribution:
        if row.row == NOISE and row.parts:
            differ = words("differ by no more than steps vary: ", named(row.parts, len(row.parts)))
            yield Sentence(differ, "Rows in noise")


def _kernels(kernels: tuple[KernelDelta, ...]) -> Table:
    numbers = ("change", "count", "count new", "ms each", "each new", "grid", "grid new")
    columns = (
        Column("kernel"),
        Column("class"),
        Column("how"),
        *(Column(one, number=True) for one in numbers),
    )
    return Table("", columns, tuple(map(_kernel, kernels)))


def _kernel(one: KernelDelta) -> Row:
    counts = (per_step(one.base_count), per_step(one.new_count))
    grids = ("x".join(map(str, known(grid) or ())) for grid in (one.base_grid, one.new_grid))
    texts = (*counts, _ms(one.base_each_ns), _ms(one.new_each_ns), *grids)
    cells = (words(Code(one.name)), words(Term(one.key)), words(_CHANGES[one.change]), moved(one.delta_ns))
    return Row((*cells, *map(Quantity, texts)))


def _layers(layers: tuple[LayerDelta, ...]) -> Table:
    numbers = tuple(Column(one, number=True) for one in ("base", "new", "change"))
    columns = (Column("layer"), *numbers, Column("changed most"), Column("its change", number=True))
    return Table("", columns, tuple(map(_layer, layers)))


def _layer(one: LayerDelta) -> Row:
    lengths = map(Quantity, map(milliseconds, (one.base_ns, one.new_ns)))
    most = words(Term(one.module))
    return Row((words(str(one.layer)), *lengths, moved(one.delta_ns), most, moved(one.module_delta_ns)))


def _pairs(pairs: tuple[ComparedPair, ...]) -> Table:
    columns = (Column("base"), Column("new"), Column("paired by"), Column("change", number=True))
    return Table("", columns, tuple(map(_pair, pairs)) if len(pairs) > 1 else ())


def _pair(pair: ComparedPair) -> Row:
    return Row((words(who(pair.base)), words(who(pair.new)), words(pair.by), moved(pair.step_delta_ns)))


def _about(compared: Compared) -> Iterator[Block]:
    yield from (Sentence((sentence(one),), "Warning") for one in compared.warnings[1:])
    tool, guidance = compared.tool, known(compared.tool.guidance)
    rules = f", guidance {guidance}" if guidance else ""
    yield Sentence((f"{tool.name} {tool.version}{rules}, document {compared.schema_version}.",))
    yield Sentence((redaction_words(compared.redacted),))
    if compared.command is not UNSET:
        yield Command(("To make this report again:",), compared.command)
