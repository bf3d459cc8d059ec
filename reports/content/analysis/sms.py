"""How one rank used the SMs and tensor cores of its GPU."""

from collections.abc import Iterator

from reports.content.analysis.figures import figures_of, figures_table, times_of, times_table
from reports.content.analysis.scale import Scale, scale_of
from reports.content.blocks import Block, Column, Hue, Part, Quantity, Row, Table, Term, words
from traces.missing import known
from traces.sections.rank import LaunchUse, Rank
from traces.spelling import percent


def sms(rank: Rank) -> Part:
    """What launches allow, what counters say, GEMMs without tensor cores, and the same by class."""
    return Part("Use of the SMs", tuple(_blocks(rank)), "sms")


def _blocks(rank: Rank) -> Iterator[Block]:
    sm, scale = rank.sm, scale_of(rank)
    figures = [
        *figures_of(sm, "limiter_ns", "capability_at_least", "by_class", "stretch", "measured"),
        *figures_of(rank.tensor_cores, "tf32", "fp32_to_tf32_frac", "half", "peaks_known"),
    ]
    if (seen := known(sm.measured)) is not None:
        figures += figures_of(seen)
    yield figures_table("Figures; occupancy is theoretical", figures, scale)
    if limits := known(sm.limiter_ns):
        yield times_table("What limits occupancy, kernel work", scale, times_of(limits, Hue.COMPUTE))
    if sm.by_class:
        yield _by_class(rank, scale)


def _by_class(rank: Rank, scale: Scale) -> Table:
    heads = ("", "occupancy", "filled", "under-filled", "persistent")
    columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
    rows = tuple(_class_row(key, use, scale) for key, use in rank.sm.by_class.items())
    return Table(f"By class; the last two in {scale.unit} of kernel work", columns, rows)


def _class_row(key: str, use: LaunchUse, scale: Scale) -> Row:
    shares = [known(use.occupancy_frac), known(use.fill_frac)]
    times = [known(use.under_filled_ns), known(use.persistent_ns)]
    cells = [
        *("unknown" if one is None else percent(one) for one in shares),
        *("unknown" if one is None else scale.ms(one) for one in times),
    ]
    return Row((words(Term(key)), *(Quantity(cell) for cell in cells)))
