"""The MoE layers of one rank: what each module takes in each pass, expert all-to-all, messages of NCCL."""

from collections.abc import Iterator

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.times import Scale, figures_of, figures_table, scale_of
from reports.content.blocks import Block, Code, Entry, Part, Sentence, Term, table, words
from traces.missing import Missing, known
from traces.sections.rank import PASSES, Moe, Pass, Rank
from traces.sections.trace import Messages
from traces.spelling import counted, megabytes, percent


def moe(rank: Rank) -> Part | None:
    """Nothing where no tokens are routed."""
    found = known(rank.moe)
    return Part("MoE layers", tuple(_blocks(found, scale_of(rank))), "moe") if found and found.rows else None


def _blocks(found: Moe, scale: Scale) -> Iterator[Block]:
    tax_ns, tax_frac = known(found.tax_ns), known(found.tax_frac)
    if tax_ns is not None and tax_frac is not None:
        said = f"{scale.ms(tax_ns)} {scale.unit}, {percent(tax_frac)}: exists only because tokens are routed."
        yield Sentence(words(said), "Overhead")
    elif isinstance(found.tax_ns, Missing):
        yield Sentence(words(f"Unknown: {found.tax_ns.reason}."), "Overhead")
    there = [name for name in PASSES if any(row.pass_ == name for row in found.rows)]
    modules = dict.fromkeys(row.module for row in found.rows)
    layers = known(found.layers)
    of = counted(layers, "MoE layer") if layers is not None else "All MoE layers"
    rows = (_row(module, found, there, scale) for module in modules)
    yield table(f"{of}, {scale.unit}, hidden time included", ("", *there, "compute waits"), rows)
    if waits := [wait for row in found.rows if (wait := known(row.host_wait_ns))]:
        said = f"The GPU waited for the host to read token counts: {scale.ms(sum(waits))} {scale.unit}."
        yield Sentence(words(said))


def _row(module: str, found: Moe, there: list[Pass], scale: Scale) -> list[Entry]:
    by_pass = {row.pass_: row for row in found.rows if row.module == module}
    times = [scale.ms(by_pass[name].wall_ns) if name in by_pass else "" for name in there]
    waits = [known(row.blocking_ns) for row in by_pass.values()]
    told = [one for one in waits if one is not None]
    return [Term(module), *times, scale.ms(sum(told)) if len(told) == len(waits) else "unknown"]


def communication(result: Result, rank: Rank) -> Part | None:
    """All-to-all and messages; nothing where the recording has neither."""
    blocks: list[Block] = []
    if (a2a := known(rank.a2a)) is not None and (a2a.instances or a2a.unresolved_ns):
        title = f"Expert all-to-all, dispatcher {rank.detected.dispatcher}"
        blocks.append(figures_table(title, figures_of(a2a, "spans"), scale_of(rank)))
    messages = [known(trace.nccl_messages) or () for trace in result.traces if trace.name == rank.trace]
    if rows := [_message(one) for several in messages for one in several]:
        heads = ("operation", "calls", "MB each", "communicators", "peers")
        blocks.append(table("Messages of NCCL", heads, rows))
    return Part("Communication", tuple(blocks), "communication") if blocks else None


def _message(one: Messages) -> tuple[Entry, ...]:
    peers = "" if one.peer_count is UNSET else str(one.peer_count)
    size = megabytes(one.size_bytes)
    return Code(one.operation), str(one.call_count), size, str(one.communicator_count), peers
