"""Bytes of a run: how fast each kind of communication moves, and who sends most to whom."""

from collections.abc import Callable, Iterator
from typing import Final

from reports.content.blocks import Block, Column, Quantity, Row, Sentence, Table, Term, Words, words
from traces.missing import Missing, known
from traces.sections.run import CollectiveSpeed, Run, Traffic
from traces.spelling import gigabytes, megabytes, milliseconds

_LISTED: Final = 8
"""Pairs of ranks that a table has; the document has more."""


def traffic(run: Run, name: Callable[[int], Words]) -> Iterator[Block]:
    """Speeds by kind and the largest pairs; why they are unknown where no sizes are recorded."""
    if isinstance(run.traffic, Missing):
        cure = f"To learn it: {run.traffic.cure.rstrip('.')}."
        yield Sentence(words(f"unknown: {run.traffic.reason.rstrip('.')}. {cure}"), "Bytes")
        return
    if run.traffic is None:
        return
    speeds = known(run.traffic.speeds)
    if speeds:
        heads = ("kind", "collectives", "size", "transfer, ms", "size / transfer")
        columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
        note = "Algorithm bandwidth, as in nccl-tests; of collectives that all their ranks recorded."
        yield Table("Bytes and transfer by kind", columns, tuple(map(_speed, speeds)), note=words(note))
    elif isinstance(run.traffic.speeds, Missing):
        yield Sentence(words(f"Speed is unknown: {run.traffic.speeds.reason}."), "Bytes")
    if run.traffic.largest_pairs:
        yield _pairs(run.traffic, name)


def _speed(one: CollectiveSpeed) -> Row:
    rate = known(one.bytes_per_s)
    return Row(
        (
            words(Term(one.kind)),
            Quantity(f"{one.collectives:,}"),
            Quantity(gigabytes(one.size_bytes)),
            Quantity(milliseconds(one.transfer_ns)),
            Quantity("unknown" if rate is None else f"{gigabytes(rate)}/s"),
        )
    )


def _pairs(found: Traffic, name: Callable[[int], Words]) -> Table:
    columns = (Column("from"), Column("to"), Column("kind"), Column("MB a step", number=True))
    rows = tuple(
        Row(
            (
                name(one.sender),
                name(one.receiver),
                words(Term(one.kind)),
                Quantity(megabytes(one.size_bytes)),
            )
        )
        for one in found.largest_pairs[:_LISTED]
    )
    left = max(0, len(found.largest_pairs) - _LISTED)
    return Table("Who sends most to whom", columns, rows, None, left)
