"""Expert all-to-all of one rank, and the messages that NCCL recorded."""

from collections.abc import Iterator

from msgspec import UNSET

from heuristics.result.result import Result
from reports.content.analysis.figures import figures_of, figures_table
from reports.content.analysis.scale import scale_of
from reports.content.blocks import Block, Code, Column, Part, Quantity, Row, Table, words
from traces.missing import known
from traces.sections.rank import A2a, Rank
from traces.sections.trace import Messages
from traces.spelling import megabytes


def communication(result: Result, rank: Rank) -> Part | None:
    """All-to-all and messages; nothing where the recording has neither."""
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
