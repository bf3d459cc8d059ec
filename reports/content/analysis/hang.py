"""Where a run hangs, and what ranks show that nobody profiled, as lines of a page."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from heuristics.result.result import Merged, Result
from reports.content.blocks import Part, Sentence, Tone, row, table, words
from reports.content.names import codes, joined, told
from traces.missing import Missing, known
from traces.sections.hang import Hang, HangKind, RanksAt, Witness, WitnessSource
from traces.spelling import counted, in_ms, milliseconds, numbers, percent

LABEL: Final = "Hang"
_SOURCES: Final[Mapping[WitnessSource, str]] = {
    WitnessSource.FLIGHT_RECORDER: "PyTorch's Flight Recorder",
    WitnessSource.INSPECTOR: "NCCL Inspector",
    WitnessSource.LOG: "the training log",
}


def leading_hang(result: Result) -> Hang | None:
    """A hang that a second witness shows: before it, no wall matters. Of the log's, failures speak."""
    hang = result.hang
    return None if hang is UNSET or hang.source is WitnessSource.LOG else hang


def hang_lines(result: Result | Merged, in_headline: bool = False) -> Iterator[Sentence]:
    """The hang and what to do first; nothing where none was seen. `in_headline`: the hang itself is there."""
    if result.hang is UNSET:
        return
    hang = result.hang
    if not in_headline:
        yield Sentence(words(hang_words(hang)), LABEL, Tone.BAD, whole=True)
    if hang.settings:
        yield Sentence(words("this group is as large as set by ", *codes(hang.settings)), "Setting")
    if hang.advice:
        yield Sentence(words(hang.advice), "First")


def hang_words(hang: Hang) -> str:
    """The hang in one or two sentences."""
    return f"{_collective(hang)}: {_what(hang)}."


def _collective(at: Hang | RanksAt) -> str:
    sequence = known(at.sequence)
    number = "" if sequence is None else f" seq {sequence:,}"
    return f"{at.operation}{number}" + (f" of {at.group}" if at.group else "")


def _what(hang: Hang) -> str:
    if hang.kind is HangKind.TIMEOUT:
        who = (
            f"{_ranks(hang.ranks_entered)} gave up waiting"
            if hang.ranks_entered
            else "a rank gave up waiting"
        )
        return f"{who}; the rank that did not arrive is unknown"
    waiting = _ranks(hang.ranks_entered)
    if hang.kind is HangKind.TRANSFER:
        return f"all its {len(hang.ranks_entered)} ranks entered it, and none finished it"
    if hang.kind in (HangKind.OTHER_OPERATION, HangKind.OTHER_SIZE):
        gave = f" with {hang.elements}" if hang.kind is HangKind.OTHER_SIZE else ""
        others = "; ".join(_other(hang, one) for one in hang.elsewhere)
        return f"{waiting} entered it{gave}; {others}"
    if hang.kind is HangKind.OTHER_ORDER:
        places = "; ".join(f"{_ranks(one.ranks)} in {_collective(one)}" for one in hang.elsewhere)
        return f"the order of calls differs: {waiting} {_verb(hang.ranks_entered, 'waits')} in it, {places}"
    missing = known(hang.ranks_missing)
    gone = f"{_ranks(missing)} never entered" if missing else "all ranks with a dump entered it"
    silent = f"; no dump of {_ranks(hang.ranks_silent)}" if hang.ranks_silent else ""
    wait = f"; {waiting} {_verb(hang.ranks_entered, 'waits')}" if hang.ranks_entered else ""
    return f"{gone}{silent}{wait}{_last(hang)}"


def _other(hang: Hang, one: RanksAt) -> str:
    if hang.kind is HangKind.OTHER_SIZE:
        return f"{_ranks(one.ranks)} with {one.elements}"
    return f"{_ranks(one.ranks)} entered {one.operation} instead"


def _last(hang: Hang) -> str:
    if len(hang.elsewhere) != 1:
        return ""
    (last,) = hang.elsewhere
    state = "finished" if last.finished else "not finished"
    return f". The last collective of {_ranks(last.ranks)}: {_collective(last)}, {state}"


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {numbers(ranks)}"


def _verb(ranks: tuple[int, ...], one: str) -> str:
    return one if len(ranks) == 1 else one.removesuffix("s")


def witness_lines(witness: Witness | UnsetType) -> Iterator[Sentence]:
    """What the files of a second witness show of ranks, of which some were not profiled."""
    if witness is UNSET:
        return
    beside = [one for one in witness.ranks if not one.profiled]
    of = " and ".join(_SOURCES[one] for one in witness.sources)
    parts = [f"{counted(len(witness.ranks), 'rank')} by {of}, {len(beside)} of them not profiled"]
    parts += [_compared(witness)]
    yield Sentence(joined([words(one) for one in parts], "; "), "Witness", whole=True)


def _compared(witness: Witness) -> str:
    if isinstance(witness.latest_rank, Missing):
        return "their collectives are not timed"
    shares, last = known(witness.latest_frac), known(witness.latest_rank)
    if last is None or shares is None:
        return f"no rank waits in {counted(witness.compared, 'timed collective')}"
    caused = next((known(one.caused_ns) for one in witness.ranks if one.rank == last), None) or 0
    return (
        f"of {counted(witness.compared, 'timed collective')} rank {last} arrives last in {percent(shares)}, "
        f"and the others wait {in_ms(caused)} for it"
    )


_MOST: Final = 64
"""Ranks that a table shows; the rest are in the JSON document."""


def witness_part(witness: Witness | UnsetType) -> Iterator[Part]:
    """The ranks of a second witness as a table: of many those that others waited for the most."""
    if witness is UNSET or not witness.ranks:
        return
    most = sorted(witness.ranks, key=lambda one: (-(known(one.caused_ns) or 0), one.rank))[:_MOST]
    rows = (
        row(
            (
                f"rank {one.rank}",
                "yes" if one.profiled else "no",
                f"{one.collectives:,}",
                told(one.last_sequence, lambda number: f"{number:,}"),
                *(told(value, milliseconds) for value in (one.waited_ns, one.caused_ns)),
                told(one.arrived_last, lambda count: f"{count:,}"),
            )
        )
        for one in sorted(most, key=lambda one: one.rank)
    )
    heads = ("rank", "profiled", "collectives", "last seq", "waited, ms", "caused, ms", "arrived last")
    note = (
        "waited: in collectives, for the last rank to arrive; caused: what the others waited for this rank."
    )
    shown = table(
        "Each rank by a second witness", heads, rows, note=note, left_out=len(witness.ranks) - len(most)
    )
    yield Part("Second witness", (shown,), "witness")
