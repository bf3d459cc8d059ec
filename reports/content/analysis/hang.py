"""Where a run hangs, and what ranks show that nobody profiled, as lines of a page."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.result import Merged, Result
from reports.content.blocks import Part, Sentence, Tone
from reports.content.names import (
    around,
    codes,
    optional,
    rank_numbers,
    statement,
    titled,
    told,
    told_ms,
    when,
)
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import known_of, those
from traces.missing import Missing, known
from traces.sections.hang import Hang, RanksAt, Witness, WitnessSource
from traces.spelling import counted, in_ms, percent

LABEL: Final = "Hang"


def leading_hang(result: Result | Merged) -> Hang | None:
    """A hang that a second witness shows: before it, no wall matters. Of the log's, failures
    speak.
    """
    hang = result.hang
    if hang and hang.source is not WitnessSource.LOG:
        return hang
    return None


def hang_lines(result: Result | Merged) -> Iterator[Sentence]:
    """The hang, unless the headline says it, and what to do first; nothing where none was seen."""
    hang = result.hang
    if not hang:
        return
    if not leading_hang(result):
        yield statement(hang_words(hang), LABEL, Tone.BAD, whole=True)
    if hang.settings:
        yield statement(
            around("this group is as large as set by ", codes(hang.settings)), "Setting"
        )
    if hang.advice:
        yield statement(hang.advice, "First")


def hang_words(hang: Hang) -> str:
    """The hang in one or two sentences."""
    return f"{_collective(hang)}: {_what(hang)}."


def _collective(at: Hang | RanksAt) -> str:
    return f"{at.operation}{optional(' seq {:,}', at.sequence, int)}{optional(' of {}', at.group)}"


def _what(hang: Hang) -> str:
    entered, elsewhere = hang.ranks_entered, hang.elsewhere
    waiting, waits = rank_numbers(entered), "waits" if len(entered) == 1 else "wait"
    if template := words_of("hang").get(hang.kind):
        others = _others(hang, words_of("hang_elsewhere").get(hang.kind, ""))
        return template.format(
            who=waiting if entered else "a rank",
            waits=waits,
            others=others,
            at=hang,
            count=len(entered),
        )
    missing = hang.ranks_missing
    text = (
        f"{rank_numbers(missing)} never entered" if missing else "all ranks with a dump entered it"
    )
    text += optional("; no dump of {}", hang.ranks_silent, rank_numbers)
    text += when(entered, f"; {waiting} {waits}")
    if len(elsewhere) == 1:
        (last,) = elsewhere
        state = "finished" if last.finished else "not finished"
        text += f". The last collective of {rank_numbers(last.ranks)}: {_collective(last)}, {state}"
    return text


def _others(hang: Hang, did: str) -> str:
    """What ranks did elsewhere; `did`: with gaps for them and for their collective."""
    return "; ".join(
        f"{rank_numbers(at.ranks)} {did.format(at, _collective(at))}" for at in hang.elsewhere
    )


def witness_lines(result: Result | Merged) -> Iterator[Sentence]:
    """What the files of a second witness show of ranks, of which some were not profiled."""
    witness = result.witness
    if not witness:
        return
    source_names = words_of("witness_source")
    of = " and ".join(source_names[source] for source in witness.sources)
    beside = len(those(witness.ranks, profiled=False))
    ranks_seen = f"{counted(len(witness.ranks), 'rank')} by {of}, {beside} of them not profiled"
    yield statement(f"{ranks_seen}; {_compared(witness)}", "Witness", whole=True)


def _compared(witness: Witness) -> str:
    if isinstance(witness.latest_rank, Missing):
        return "their collectives are not timed"
    shares, last = known(witness.latest_frac), known(witness.latest_rank)
    timed = counted(witness.compared, "timed collective")
    if last is None or shares is None:
        return f"no rank waits in {timed}"
    caused = sum(known_of(those(witness.ranks, rank=last), "caused_ns"))
    arrives = f"of {timed} rank {last} arrives last in {percent(shares)}"
    return f"{arrives}, and the others wait {in_ms(caused)} for it"


ROWS: Final = 64
"""Ranks that a table shows; the rest are in the JSON document."""


def witness_part(result: Result | Merged) -> Iterator[Part]:
    """The ranks of a second witness as a table: of many those that others waited for the most."""
    witness = result.witness
    if not witness or not witness.ranks:
        return
    worst = sorted(witness.ranks, key=lambda rank: (-(rank.caused_ns or 0), rank.rank))[:ROWS]
    rows = []
    for witnessed in sorted(worst, key=lambda rank: rank.rank):
        profiled = "yes" if witnessed.profiled else "no"
        counts = f"{witnessed.collectives:,}", told(witnessed.last_sequence, "{:,}".format)
        times = told_ms(witnessed.waited_ns), told_ms(witnessed.caused_ns)
        last = told(witnessed.arrived_last, "{:,}".format)
        rows.append((f"rank {witnessed.rank}", profiled, *counts, *times, last))
    yield titled("witness", [shaped("witness", rows, len(witness.ranks) - len(worst))])
