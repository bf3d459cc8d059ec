"""Behind the headline: each wall with its evidence, what comes next, and the proofs of the replay."""

from collections.abc import Iterator

from msgspec import UNSET

from heuristics.result.judged import Evidence, Wall
from heuristics.result.result import Result
from reports.content.analysis.figures import figures_of, figures_table, written
from reports.content.analysis.scale import per_step_ns, scale_of
from reports.content.blocks import (
    Block,
    Column,
    Fold,
    Items,
    Part,
    Quantity,
    Row,
    Sentence,
    Table,
    Term,
    Words,
    words,
)
from reports.content.names import capital, name_of, who
from reports.content.wording import sentence
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import milliseconds, percent
from traces.steps.selection import seconds


def evidence(result: Result) -> Part:
    """The verdict's reasons, a fold a wall, and whether the replay means anything."""
    blocks = (*_verdict(result), *(_wall(result, wall) for wall in result.walls), *_proofs(result))
    return Part("How sure, and why", blocks, "evidence")


def _verdict(result: Result) -> Iterator[Block]:
    verdict = result.verdict
    reasons: tuple[Words, ...] = tuple(words(sentence(one)) for one in verdict.because)
    if verdict.next_because:
        reasons = (*reasons, words(sentence(verdict.next_because)))
    yield Items(reasons, "What the headline rests on")
    if verdict.confidence_because:
        yield Items(
            tuple(words(sentence(one)) for one in verdict.confidence_because),
            "What lowers the confidence",
        )
    bound = known(verdict.bound)
    bucket, share = known(verdict.largest_bucket), known(verdict.largest_bucket_frac)
    largest = f" Largest part: {name_of(bucket)}, {percent(share)}." if bucket and share is not None else ""
    yield Sentence(words(f"{capital(name_of(bound)) if bound else 'unknown'}.{largest}"), "Bound by")


def _wall(result: Result, wall: Wall) -> Fold:
    share = known(wall.cost_frac)
    cost = f", at most {percent(share)}" if share is not None else ""
    blocks: list[Block] = []
    if kinds := {kind: ns for kind, ns in (known(wall.cost_by_kind_ns) or {}).items() if ns}:
        unit = scale_of(result.ranks[0]).unit
        columns: tuple[Column, ...] = (Column("each kind taken away alone"), Column(unit, number=True))
        rows = tuple(
            Row((words(Term(kind)), Quantity(milliseconds(per_step_ns(result, ns)))))
            for kind, ns in sorted(kinds.items(), key=lambda one: -one[1])
        )
        blocks.append(Table("", columns, rows, note=words("They overlap: they do not add up.")))
    if wall.evidence:
        heads = ("measured", "value", "limit", "why")
        columns = tuple(Column(head, number=place in (1, 2)) for place, head in enumerate(heads))
        blocks.append(Table("", columns, tuple(_evidence(one) for one in wall.evidence)))
    if wall.room is not UNSET:
        blocks.append(Sentence(words(f"{capital(wall.room)}."), "Free GPU memory"))
    missing = tuple(words(sentence(one)) for one in wall.missing)
    if missing:
        blocks.append(
            Items((*missing, *((words(f"To learn it: {wall.cure}."),) if wall.cure else ())), "Missing")
        )
    return Fold(f"{capital(name_of(wall.id))}: {wall.outcome}{cost}", tuple(blocks), f"wall-{wall.id}")


def _evidence(one: Evidence) -> Row:
    limit = "" if one.limit is None else written(one.limit, one.unit)
    place = "" if one.start_ns is None else f", at {seconds(one.start_ns)}"
    return Row(
        (
            words(Term(one.measure)),
            Quantity(written(one.value, one.unit)),
            Quantity(limit),
            words(f"{one.because}{place}"),
        )
    )


def _proofs(result: Result) -> Iterator[Block]:
    for rank in result.ranks:
        if (table := _proof(rank, len(result.ranks) > 1)) is not None:
            yield table


def _proof(rank: Rank, several: bool) -> Table | None:
    """By how much the replay misses the recording, and how it answers to less GPU work."""
    replay = known(rank.replay)
    if replay is None:
        return None
    return figures_table(f"Proofs of the replay{f' of {who(rank)}' if several else ''}", figures_of(replay))
