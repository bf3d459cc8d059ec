"""The MoE layers of one rank: what each module takes in each pass."""

from collections.abc import Iterator
from typing import Final

from reports.content.analysis.scale import Scale, scale_of
from reports.content.blocks import Block, Column, Part, Quantity, Row, Sentence, Table, Term, words
from traces.missing import Missing, known
from traces.sections.rank import Moe, MoeRow, Pass, Rank
from traces.spelling import counted, percent

_PASSES: Final[tuple[Pass, ...]] = ("forward", "recompute", "backward")


def moe(rank: Rank) -> Part | None:
    """The overhead of routing in one figure, then modules by pass; nothing where no tokens are routed."""
    found = known(rank.moe)
    return Part("MoE layers", tuple(_blocks(found, scale_of(rank))), "moe") if found and found.rows else None


def _blocks(found: Moe, scale: Scale) -> Iterator[Block]:
    tax_ns, tax_frac = known(found.tax_ns), known(found.tax_frac)
    if tax_ns is not None and tax_frac is not None:
        said = f"{scale.ms(tax_ns)} {scale.unit}, {percent(tax_frac)}: exists only because tokens are routed."
        yield Sentence(words(said), "Overhead")
    elif isinstance(found.tax_ns, Missing):
        yield Sentence(words(f"Unknown: {found.tax_ns.reason}."), "Overhead")
    there = [name for name in _PASSES if any(row.pass_ == name for row in found.rows)]
    heads = ("", *there, "compute waits")
    columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
    modules = list(dict.fromkeys(row.module for row in found.rows))
    rows = tuple(_row(module, found, there, scale) for module in modules)
    layers = known(found.layers)
    of = counted(layers, "MoE layer") if layers is not None else "All MoE layers"
    yield Table(f"{of}, {scale.unit}, hidden time included", columns, rows)
    waits = [wait for row in found.rows if (wait := known(row.host_wait_ns))]
    if waits:
        yield Sentence(
            words(f"The GPU waited for the host to read token counts: {scale.ms(sum(waits))} {scale.unit}.")
        )


def _row(module: str, found: Moe, there: list[Pass], scale: Scale) -> Row:
    by_pass = {row.pass_: row for row in found.rows if row.module == module}
    times = [Quantity(scale.ms(by_pass[name].wall_ns) if name in by_pass else "") for name in there]
    return Row((words(Term(module)), *times, Quantity(_waits(list(by_pass.values()), scale))))


def _waits(rows: list[MoeRow], scale: Scale) -> str:
    waits = [known(row.blocking_ns) for row in rows]
    told = [one for one in waits if one is not None]
    return scale.ms(sum(told)) if len(told) == len(waits) else "unknown"
