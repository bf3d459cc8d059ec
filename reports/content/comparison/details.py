"""Everything behind the first screen of a comparison: both sides, every row, kernel, layer and pair."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.compared import Compared, ComparedPair, KernelDelta, LayerDelta, Side
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
    words,
)
from reports.content.comparison.headline import unit
from reports.content.comparison.ranks import ranks_table
from reports.content.comparison.rows import NOISE, ledger_name, module_name, moved, named, per_step, row_table
from reports.content.names import gpu_of, name_of, who
from reports.content.wording import sentence
from reports.redaction import redaction_words
from traces.missing import OrMissing, known
from traces.spelling import milliseconds

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
