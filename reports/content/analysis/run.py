"""Several ranks of one run: how alike they are, who is late and why, and every rank as a row.

A run that was put together from summaries has a page of its own, with what is wrong with the set.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from heuristics.result.result import Merged, Result
from reports.content.analysis.called import name_of_rank, short_name
from reports.content.analysis.hang import ROWS, hang_lines, hang_words, witness_lines, witness_part
from reports.content.analysis.inside import experts, routing_notes, stages, traffic
from reports.content.analysis.late import NAMED, Names, costs_words, first_of, late_words, why_words
from reports.content.analysis.walls import alike
from reports.content.blocks import (
    Block,
    Code,
    Entry,
    Headline,
    Hue,
    Part,
    Quantity,
    Sentence,
    Tone,
    Words,
    items,
    row,
    words,
)
from reports.content.names import (
    ended,
    joined,
    optional,
    plain,
    rank_numbers,
    sentence,
    statement,
    titled,
    told,
    told_ms,
    unknown_words,
    when,
)
from reports.content.page import Detail, Page
from reports.content.tables import shaped
from reports.rows import each, known_of
from traces.missing import Missing, known
from traces.sections.cause import Cause
from traces.sections.run import ArrivesLast, Late, RankInRun, Run
from traces.spelling import counted, duration, milliseconds, percent, rounded

_APART: Final = 0.05
"""Steps of ranks that differ by more are given as a range."""
_PAIR: Final = 2
_ALL: Final = 0.995
"""Of the communication time, in groups of which every rank was recorded: they name no rank beyond
these."""


def run_lines(result: Result) -> Iterator[Sentence]:
    run, count = result.run, len(result.ranks)
    of_one = len(result.traces) == 1 == len({*known_of(result.ranks, "process")})
    if run and (run.collectives or not of_one):
        yield from lines_of(run, _names_in(result), alike(result))
    elif count > 1 and of_one:
        yield statement(f"of one process: {alike(result)}", f"{count} GPUs")
    elif count > 1:
        yield statement(alike(result), f"{count} ranks")
    yield from witness_lines(result)


def _names_in(result: Result) -> Names:
    return Names(partial(name_of_rank, result), partial(short_name, result))


def lines_of(run: Run, names: Names, otherwise: str) -> Iterator[Sentence]:
    """The same of a run alone; `otherwise` stands in place of its steps where these are unknown."""
    yield _together(run, otherwise)
    yield from _late(run, names)
    for problem in run.problems:
        if problem.traces:
            left_out_because = f": {when(problem.left_out, 'left out, ')}{ended(problem.reason)}"
            recorded = words(first_of([*map(Code, problem.traces)]), left_out_because)
            yield Sentence(recorded, "Recorded", Tone.NOTICE)
        elif problem.ranks:
            yield statement(
                f"Not recorded: {rank_numbers(problem.ranks)}.", "Recorded", Tone.NOTICE
            )


def _together(run: Run, otherwise: str) -> Sentence:
    world, parts = known(run.world_size), [_steps(run, otherwise)]
    few = world is not None and run.ranks_seen < world
    if few:
        parts.insert(0, "nothing is known of the others")
    if moved_ns := run.wait_ns + run.transfer_ns:
        waiting = f"{percent(run.wait_ns / moved_ns)} of communication time is waiting"
        parts.append(f"{when(few, 'at least ')}{waiting}")
    else:
        parts.append("no collective kernel could be matched across them")
    if world is None and (run.complete_frac or 0.0) >= _ALL:
        parts.append("every group is complete")
    elif world is None:
        parts.append("the run may have more ranks: give --world-size N")
    return statement("; ".join(parts), _seen(run), whole=True)


def _seen(run: Run) -> str:
    if (world := known(run.world_size)) is not None:
        return f"{run.ranks_seen:,} of {counted(world, 'rank')}"
    return counted(run.ranks_seen, "rank")


def _steps(run: Run, otherwise: str) -> str:
    lengths = [*filter(None, known_of(run.ranks, "step_ns"))]
    if len(lengths) < len(run.ranks) or not lengths:
        return otherwise
    low_ns, high_ns = min(lengths), max(lengths)
    spread = (high_ns - low_ns) / low_ns
    if spread > _APART:
        return f"steps of {milliseconds(low_ns)} to {milliseconds(high_ns)} ms"
    return f"steps of {milliseconds(high_ns)} ms{when(spread, f', equal within {percent(spread)}')}"


def _late(run: Run, names: Names) -> Iterator[Sentence]:
    late, last = run.late, run.arrives_last
    if isinstance(late, Missing) and last:
        straggler_words = words(_last(names, last), f" Why is {unknown_words(late)}")
        yield Sentence(straggler_words, "Arrives last", Tone.NOTICE)
    elif isinstance(late, Missing):
        yield statement(unknown_words(late), "Straggler", Tone.MUTED)
    elif late and late.cause is Cause.NONE:
        differ = "no rank stands out from how much ranks with the same work differ"
        yield statement(f"none of these {run.ranks_seen}: {differ}.", "Straggler", whole=True)
    elif late:
        straggler_words = words(why_words(run, names, late), " ", costs_words(run, late))
        yield Sentence(straggler_words, "Straggler", Tone.NOTICE, whole=True)
        yield statement(late.repair, "First" if late.repair_first else "Repair")


def _last(names: Names, last: ArrivesLast) -> Words:
    """Who arrives last, as how long each rank is in the same collectives shows; why is not
    known.
    """
    named = first_of([*map(names.full, last.indices)])
    waiting = (
        f"{percent(last.waiting_frac)} of all waiting in {counted(last.collectives, 'collective')}"
    )
    paired = when(last.by_order, ", paired by nothing but their order")
    waiting_words = f": {waiting} of all ranks{paired}. Confidence: {last.confidence}."
    return words(optional("{}: ", last.host), named, waiting_words)


def ranks_part(result: Result) -> Iterator[Part]:
    run = result.run
    if run and run.ranks:
        yield part_of(run, _names_in(result), routing_notes(result))


def part_of(run: Run, names: Names, routing: Sequence[Words] = ()) -> Part:
    """The same of a run alone; `routing`: what is known of it from elsewhere."""
    blocks = [_rows(run, names)]
    if len(run.groups) > 1:
        groups = []
        for place, group in enumerate(run.groups, start=1):
            parts = "experts", "embedding", "loss"
            also = ", ".join(part for part in parts if getattr(group, f"has_{part}"))
            kernels = f"{group.attention_kernels:,}", f"{group.router_kernels:,}"
            groups.append(
                (f"{place}", f"{len(group.ranks):,}", told_ms(group.step_ns), *kernels, also)
            )
        blocks.append(shaped("groups", groups))
    blocks += [*stages(run), *experts(run, names.short, routing), *traffic(run)]
    blocks += items("What this rests on", _notes(run, names))
    return titled("ranks", blocks)


def late_places(run: Run) -> tuple[int, ...]:
    if late := run.late:
        return late.places
    return ()


def shown_ranks(run: Run, most: int = ROWS) -> list[RankInRun]:
    """The ranks that a table or a map shows: all, or of many those that others waited for the
    most.
    """
    if len(run.ranks) <= most:
        return list(run.ranks)
    places = late_places(run)
    costly = sorted(run.ranks, key=lambda rank: (rank.index not in places, -(rank.caused_ns or 0)))
    return sorted(costly[:most], key=lambda rank: rank.index)


def _rows(run: Run, names: Names) -> Block:
    late, shown, rows = known(run.late), shown_ranks(run), []
    all_ns = sum(known_of(run.ranks, "caused_ns"))
    for rank in shown:
        tone = Tone.NOTICE if is_late(late, rank) else Tone.PLAIN
        caused: Entry = told_ms(rank.caused_ns)
        if (caused_ns := rank.caused_ns) and all_ns:
            caused = Quantity(milliseconds(caused_ns), caused_ns / all_ns, Hue.COMMUNICATION)
        times = told_ms(rank.step_ns), milliseconds(rank.waited_ns), caused
        factor = told(rank.device_factor, lambda factor: f"{rounded(factor)} x")
        rows.append(row((names.short(rank.index), f"{rank.group + 1}", *times, factor), tone=tone))
    in_pairs = _PAIR in map(len, each(run.groups, "ranks"))
    paired = when(in_pairs, "; of two such ranks each is held against the other")
    gaps = [waits.caused_ns.reason for waits in run.ranks if isinstance(waits.caused_ns, Missing)]
    why = optional(" Who caused the waiting is unknown: {}.", "".join(gaps[:1]))
    of = "a mean step" if run.steps else "the recording"
    return shaped("ranks", rows, len(run.ranks) - len(shown), of=of, paired=paired, why=why)


def is_late(late: Late | None, rank: RankInRun) -> bool:
    """Whether a rank is the late one, or of the stage that is."""
    return late is not None and (rank.index in late.places or late.group == rank.group)


def _notes(run: Run, names: Names) -> Iterator[Words]:
    apart = run.clocks.residual_ns
    if isinstance(apart, Missing):
        if not run.clocks.aligned:
            yield words(sentence(f"no common clock: {apart.reason}"))
    elif apart is not None:
        yield words(
            f"One clock for all ranks: ends of one collective lie {duration(apart)} apart (median)."
        )
    steps = when(run.steps, f" in {counted(run.steps, 'step')}")
    costly = sorted(((ns, kind) for kind, ns in run.wait_by_kind_ns.items() if ns), reverse=True)
    kinds = [f"{percent(ns / run.wait_ns)} in {kind}" for ns, kind in costly[:NAMED]]
    if run.collectives:
        yield words(
            f"{counted(run.collectives, 'collective')} matched across ranks{steps}: waiting "
            f"{duration(run.wait_ns)}{optional(' ({})', ', '.join(kinds))}, "
            f"data transfer {duration(run.transfer_ns)}, all ranks together."
        )
    if (ranks := known(run.world_size)) is not None and run.world_size_from is not None:
        yield words(f"Number of ranks, {ranks}: by ", Code(run.world_size_from), ", not recorded.")
    if (complete := known(run.complete_frac)) is not None:
        yield words(
            f"Every rank of the group was recorded for {percent(complete)} of communication time."
        )
    if (most := known(run.imbalance)) is not None:
        yield words(f"Largest expert work of a group of ranks: {rounded(most)} times the mean.")
    if without := run.without:
        yield words(
            f"Replayed, a step takes {milliseconds(without.step_ns)} ms, and "
            f"{milliseconds(without.without_ns)} ms without the cause."
        )
    late = run.late
    if late and late.by_step:
        by_step = [
            words("none") if place is None else names.full(place) for place in late.by_step[:ROWS]
        ]
        yield words("Late in each step, in order: ", joined(by_step), ".")


def merged_name(merged: Merged, place: int) -> Words:
    rank = known(merged.run.ranks[place].rank)
    return words(Code(merged.traces[place]) if rank is None else f"rank {rank}")


def merged_text(merged: Merged, place: int) -> str:
    return plain(merged_name(merged, place))


def run_headline(merged: Merged) -> Headline:
    """Where the run hangs, else who is late; what else is known of it stands below."""
    run, late, tone = merged.run, merged.run.late, Tone.NOTICE
    if hang := merged.hang:
        label, said, tone = "HANGS IN", hang_words(hang), Tone.BAD
    elif isinstance(late, Missing):
        label, said = "LATE RANK UNKNOWN", sentence(late.reason)
    elif not late:
        label, said = "LATE RANK UNKNOWN", "Nothing was compared."
    elif late.cause is Cause.NONE:
        label, tone = "NO LATE RANK", Tone.GOOD
        said = "No rank stands out from how much ranks with the same work differ."
    else:
        label = "A LATE RANK COSTS LITTLE"
        said = late_words(run, late, partial(merged_text, merged))
        if late.repair_first:
            label, tone = "SLOWED BY", Tone.BAD
    return Headline(label, words(said), tone)


def page(merged: Merged) -> Page:
    run, name = merged.run, partial(merged_name, merged)
    names, met = Names(name, name), counted(run.collectives, "collective")
    facts = f"{_seen(run)}, {met} in common, {counted(run.steps, 'step')}"
    blocks: list[Block] = [run_headline(merged), *hang_lines(merged)]
    if run.ranks:
        blocks += lines_of(run, names, "steps unknown")
    blocks += witness_lines(merged)
    if run.ranks:
        blocks.append(part_of(run, names))
    blocks += (*witness_part(merged), *items("Warnings", merged.warnings))
    return Page(words("run"), words(facts), tuple(blocks), Detail.FULL)
