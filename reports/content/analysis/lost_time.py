"""Why no compute ran: every millisecond without compute under one reason."""

from collections.abc import Iterator

from reports.content.analysis.figures import Time, times_of, times_table
from reports.content.analysis.scale import scale_of
from reports.content.blocks import Block, Hue, Part, Sentence, Term, words
from traces.missing import Missing, known
from traces.sections.rank import Absent, Rank
from traces.spelling import percent


def lost_time(rank: Rank) -> Part:
    """The reasons, largest first, and what they rest on."""
    return Part("Why no compute ran", tuple(_blocks(rank)), "lost-time")


def _blocks(rank: Rank) -> Iterator[Block]:
    if isinstance(rank.absent_ns, Missing):
        yield Sentence(words(f"Unknown: {rank.absent_ns.reason}."))
    absent = known(rank.absent_ns)
    if absent is None:
        return
    total = Time((Term("absent_ns"),), rank.budget_ns.window - rank.budget_ns.compute)
    yield times_table("Time without compute", scale_of(rank), _reasons(absent), total)
    if (by := known(rank.absent_decided_by_frac)) is not None:
        said = (
            f"{percent(by.recorded)} recorded dependency, {percent(by.inferred)} inferred, "
            f"{percent(by.none)} unknown."
        )
        yield Sentence(words(said), "Rests on")
    if masked_ns := known(rank.masked_ns):
        said = (
            f"In {scale_of(rank).ms(masked_ns)} ms of the late launches the late kernel also waited for "
            "another kernel; a faster host alone would not recover them."
        )
        yield Sentence(words(said))


def _reasons(absent: Absent) -> Iterator[Time]:
    delays = {"arrival": absent.launch_latency.arrival, "kernel_gap": absent.launch_latency.kernel_gap}
    families = (
        ("launch_starved", absent.launch_starved, Hue.HOST),
        ("blocking", absent.blocking, Hue.COMMUNICATION),
        ("launch_latency", delays, Hue.IDLE),
        ("graph_opaque", absent.graph_opaque, Hue.IDLE),
        ("dependency_stalled", absent.dependency_stalled, Hue.IDLE),
        ("trailing", absent.trailing, Hue.IDLE),
    )
    for key, parts, hue in families:
        if isinstance(parts, int):
            if parts:
                yield Time((Term(key),), parts, hue)
        elif total_ns := sum(parts.values()):
            yield Time((Term(key),), total_ns, hue)
            yield from times_of(parts, hue, 1)
