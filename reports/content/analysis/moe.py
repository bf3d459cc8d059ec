"""The MoE layers of one rank: what each module takes in each pass, expert all-to-all, messages of NCCL."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.times import Scale, figures_of, figures_table, scale_of
from reports.content.blocks import Block, Code, Column, Part, Quantity, Row, Sentence, Table, Term, words
from traces.missing import Missing, known
from traces.sections.rank import A2a, Moe, MoeRow, Pass, Rank
from traces.sections.trace import Messages
from traces.spelling import counted, megabytes, percent

_PASSES: Final[tuple[Pass, ...]] = ("forward", "recompute", "backward")


def moe(rank: Rank) -> Part | None:
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


def communication(result: Result, rank: Rank) -> Part | None:
    blocks = (*_all_to_all(rank), *_messages(result, rank))
    return Part("Communication", blocks, "communication") if blocks else None


def _all_to_all(rank: Rank) -> Iterator[Block]:
    a2a: A2a | None = known(rank.a2a)
    if a2a is None or not (a2a.instances or a2a.unresolved_ns):
        return
    title = f"Expert all-to-all, dispatcher {rank.detected.dispatcher}"
    yield figures_table(title, figures_of(a2a, "spans"), scale_of(rank))


def _messages(result: Result, rank: Rank) -> Iterator[Block]:
    messages = [known(trace.nccl_messages) or () for trace in result.traces if trace.name == rank.trace]
    rows = [_message(one) for several in messages for one in several]
    if rows:
        heads = ("operation", "calls", "MB each", "communicators", "peers")
        columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
        yield Table("Messages of NCCL", columns, tuple(rows))


def _message(one: Messages) -> Row:
    peers = "" if one.peer_count is UNSET else str(one.peer_count)
    figures = (str(one.call_count), megabytes(one.size_bytes), str(one.communicator_count), peers)
    return Row((words(Code(one.operation)), *(Quantity(text) for text in figures)))
