"""The MoE layers of one rank: what each module takes in each pass, expert all-to-all, messages of
NCCL.
"""

from collections.abc import Iterator

from heuristics.result.result import Result
from reports.content.analysis.times import Scale, figures_of, figures_table, scale_of
from reports.content.blocks import Blocks, Code, Entry, Part, Term, table
from reports.content.names import optional, statement, titled
from reports.content.tables import shaped
from reports.rows import each, known_of, those
from traces.missing import Missing, known
from traces.sections.rank import PASSES, Moe, Rank
from traces.spelling import counted, megabytes, percent


def moe(rank: Rank) -> Iterator[Part]:
    """Nothing where no tokens are routed."""
    routed = rank.moe
    if routed and routed.rows:
        yield titled("moe", _blocks(routed, scale_of(rank)))


def _blocks(routed: Moe, scale: Scale) -> Blocks:
    tax_ns, tax_frac = known(routed.tax_ns), known(routed.tax_frac)
    if tax_ns is not None and tax_frac is not None:
        text = (
            f"{scale.ms(tax_ns)} {scale.unit}, {percent(tax_frac)}: exists only because tokens "
            f"are routed."
        )
        yield statement(text, "Overhead")
    elif isinstance(routed.tax_ns, Missing):
        yield statement(f"Unknown: {routed.tax_ns.reason}.", "Overhead")
    passes = each(routed.rows, "pass_")
    columns = [name for name in PASSES if name in passes]
    layers = known(routed.layers)
    of = "All MoE layers" if layers is None else counted(layers, "MoE layer")
    rows = list[list[Entry]]()
    for module in dict.fromkeys(each(routed.rows, "module")):
        of_module, times = those(routed.rows, module=module), dict.fromkeys(columns, "")
        for row in of_module:
            times[row.pass_] = scale.ms(row.wall_ns)
        waited, waits = "unknown", known_of(of_module, "blocking_ns")
        if len(waits) == len(of_module):
            waited = scale.ms(sum(waits))
        rows.append([Term(module), *times.values(), waited])
    yield table(f"{of}, {scale.unit}, hidden time included", ("", *columns, "compute waits"), rows)
    if waits_ns := sum(known_of(routed.rows, "host_wait_ns")):
        text = (
            f"The GPU waited for the host to read token counts: {scale.ms(waits_ns)} {scale.unit}."
        )
        yield statement(text)


def communication(result: Result, rank: Rank) -> Iterator[Part]:
    """All-to-all and messages; nothing where the recording has neither."""
    blocks = []
    if (a2a := rank.a2a) and (a2a.instances or a2a.unresolved_ns):
        title = f"Expert all-to-all, dispatcher {rank.detected.dispatcher}"
        blocks.append(figures_table(title, figures_of(a2a, "spans"), scale_of(rank)))
    rows = []
    for trace in result.traces:
        messages = known(trace.nccl_messages) if trace.name == rank.trace else None
        for sent in messages or ():
            counts = f"{sent.communicator_count}", optional("{}", sent.peer_count)
            size = megabytes(sent.size_bytes)
            rows.append((Code(sent.operation), f"{sent.call_count}", size, *counts))
    if rows:
        blocks.append(shaped("messages", rows))
    if blocks:
        yield titled("communication", blocks)
