"""Several ranks of one run: how alike they are, who is late and why, and every rank as a row.

A run that was put together from summaries has a page of its own, with what is wrong with the set.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Merged, Result
from reports.content.analysis.called import name_of_rank, short_name
from reports.content.analysis.hang import hang_lines, hang_words, witness_lines, witness_part
from reports.content.analysis.inside import experts, routing_notes, stages, traffic
from reports.content.analysis.late import NAMED, Names, costs_words, first_of, late_words, why_words
from reports.content.analysis.walls import alike
from reports.content.blocks import (
    Block,
    Code,
    Detail,
    Entry,
    Headline,
    Hue,
    Items,
    Page,
    Part,
    Quantity,
    Sentence,
    Tone,
    Words,
    items,
    row,
    table,
    words,
)
from reports.content.names import ended, how_to_learn, joined, plain, sentence, told
from traces.missing import Missing, known
from traces.sections.cause import Cause
from traces.sections.run import ArrivesLast, Late, LikeRanks, RankInRun, Run, RunProblem
from traces.spelling import counted, duration, milliseconds, numbers, percent, rounded

_APART: Final = 0.05
"""Steps of ranks that differ by more are given as a range."""
"""Characters of a recording's name in a table."""
_PAIR: Final = 2
_ALL: Final = 0.995
"""Of the communication time, in groups of which every rank was recorded: they name no rank beyond these."""
_ROWS: Final = 64
"""Ranks that a table shows; the rest are in the JSON document."""


def run_lines(result: Result) -> tuple[Sentence, ...]:
    return (*_of_ranks(result), *witness_lines(result.witness))


def _of_ranks(result: Result) -> tuple[Sentence, ...]:
    if result.run is not UNSET:
        return lines_of(result.run, _names_in(result), alike(result))
    count = len(result.ranks)
    return (Sentence(words(alike(result)), f"{count} ranks"),) if count > 1 else ()


def _names_in(result: Result) -> Names:
    return Names(partial(name_of_rank, result), partial(short_name, result))


def lines_of(run: Run, names: Names, otherwise: str) -> tuple[Sentence, ...]:
    """The same of a run alone; `otherwise` stands in place of its steps where these are unknown."""
    problems = (_problem(one) for one in run.problems if one.traces or one.ranks)
    wrong = (Sentence(one, "Recorded", Tone.NOTICE) for one in problems)
    return (_together(run, otherwise), *_late(run, names), *wrong)


def _together(run: Run, otherwise: str) -> Sentence:
    world = known(run.world_size)
    label = f"{run.ranks_seen:,} of {world:,} ranks" if world else counted(run.ranks_seen, "rank")
    few = world is not None and run.ranks_seen < world
    parts = [*(["nothing is known of the others"] if few else []), _steps(run, otherwise)]
    if moved_ns := run.wait_ns + run.transfer_ns:
        least = "at least " if few else ""
        parts.append(f"{least}{percent(run.wait_ns / moved_ns)} of communication time is waiting")
    else:
        parts.append("no collective could be matched across them")
    if world is None:
        is_whole = (known(run.complete_frac) or 0.0) >= _ALL
        parts.append(
            "every group is complete" if is_whole else "the run may have more ranks: give --world-size N"
        )
    return Sentence(words("; ".join(parts)), label, whole=True)


def _steps(run: Run, otherwise: str) -> str:
    lengths = [length for one in run.ranks if (length := known(one.step_ns))]
    if len(lengths) < len(run.ranks) or not lengths:
        return otherwise
    low_ns, high_ns = min(lengths), max(lengths)
    spread = (high_ns - low_ns) / low_ns
    if spread > _APART:
        return f"steps of {milliseconds(low_ns)} to {milliseconds(high_ns)} ms"
    equal = f", equal within {percent(spread)}" if spread and len(lengths) > 1 else ""
    return f"steps of {milliseconds(high_ns)} ms{equal}"


def _late(run: Run, names: Names) -> Iterator[Sentence]:
    late = run.late
    if isinstance(late, Missing):
        unknown, last = f"unknown: {ended(late.reason)}{how_to_learn(late.cure)}", known(run.arrives_last)
        said = words(_last(names, last), f" Why is {unknown}") if last else words(unknown)
        label, tone = ("Arrives last", Tone.NOTICE) if last else ("Straggler", Tone.MUTED)
        yield Sentence(said, label, tone)
    elif late is not None and late.cause is Cause.NONE:
        differ = "no rank stands out from how much ranks with the same work differ"
        yield Sentence(words(f"none of these {run.ranks_seen}: {differ}."), "Straggler", whole=True)
    elif late is not None:
        said = words(why_words(run, names, late), " ", costs_words(run, late))
        yield Sentence(said, "Straggler", Tone.NOTICE, whole=True)
        yield Sentence(words(late.repair), "First" if late.repair_first else "Repair")


def _last(names: Names, last: ArrivesLast) -> Words:
    """Who arrives last, as how long each rank is in the same collectives shows; why is not known."""
    named = words(first_of([*map(names.full, last.indices)]))
    waiting = f"{percent(last.waiting_frac)} of all waiting in {counted(last.collectives, 'collective')}"
    paired = ", paired by nothing but their order" if last.by_order else ""
    said = f": {waiting} of all ranks{paired}. Confidence: {last.confidence}."
    return words(f"{last.host}: " if last.host else "", named, said)


def _problem(one: RunProblem) -> Words:
    if one.ranks and not one.traces:
        return words(f"Not recorded: {'rank' if len(one.ranks) == 1 else 'ranks'} {numbers(one.ranks)}.")
    state = "left out, " if one.left_out else ""
    return words(first_of([words(Code(name)) for name in one.traces]), f": {state}{ended(one.reason)}")


def ranks_part(result: Result) -> Part | None:
    run = result.run
    if run is UNSET or not run.ranks:
        return None
    return part_of(run, _names_in(result), routing_notes(result))


def part_of(run: Run, names: Names, routing: Sequence[Words] = ()) -> Part:
    """The same of a run alone; `routing`: what is known of it from elsewhere."""
    blocks: list[Block] = [_rows(run, names)]
    if len(run.groups) > 1:
        heads = ("group", "ranks", "step, ms", "attention kernels", "router kernels", "runs also")
        groups = (_group(place, one) for place, one in enumerate(run.groups))
        title = "Groups of ranks that do the same work; only these are compared with each other"
        blocks.append(table(title, heads, groups, range(1, 5)))
    blocks += [*stages(run), *experts(run, names.short, routing), *traffic(run)]
    blocks.append(Items(tuple(_notes(run, names)), "What this rests on"))
    return Part("Ranks", tuple(blocks), "ranks")


def shown_ranks(run: Run, most: int = _ROWS) -> list[RankInRun]:
    """The ranks that a table or a map shows: all, or of many those that others waited for the most."""
    if len(run.ranks) <= most:
        return list(run.ranks)
    late = known(run.late)
    first = sorted(
        run.ranks,
        key=lambda one: (late is None or one.index not in late.places, -(known(one.caused_ns) or 0)),
    )
    return sorted(first[:most], key=lambda one: one.index)


def _rows(run: Run, names: Names) -> Block:
    late, shown = known(run.late), shown_ranks(run)
    caused = [one.caused_ns for one in run.ranks]
    all_ns = sum(known(one) or 0 for one in caused)
    rows = (
        row(
            (names.short(one.index), str(one.group + 1), *_figures(one, all_ns)),
            tone=Tone.NOTICE if is_late(late, one) else Tone.PLAIN,
        )
        for one in shown
    )
    note = "waited: in collectives, for others; caused: what all others together waited for this rank; "
    note += "kernels: how many times as long they take as on ranks with the same work"
    paired = any(len(one.ranks) == _PAIR for one in run.groups)
    note += "; of two such ranks each is held against the other." if paired else "."
    missing = next((one for one in caused if isinstance(one, Missing)), None)
    note += f" Who caused the waiting is unknown: {missing.reason}." if missing is not None else ""
    title = f"Each rank, ms in {'a mean step' if run.steps else 'the recording'}"
    heads = ("rank", "group", "step", "waited", "caused", "kernels")
    return table(title, heads, rows, note=note, left_out=len(run.ranks) - len(shown))


def is_late(late: Late | None, one: RankInRun) -> bool:
    """Whether a rank is the late one, or of the stage that is."""
    return late is not None and (
        one.index in late.places or (late.group is not None and late.group == one.group)
    )


def _figures(one: RankInRun, all_ns: int) -> tuple[Entry, ...]:
    """Step, waiting, caused waiting with its share of all, and kernel time; unknown is never zero."""
    caused: Entry = told(one.caused_ns, milliseconds)
    if (caused_ns := known(one.caused_ns)) and all_ns:
        caused = Quantity(milliseconds(caused_ns), caused_ns / all_ns, Hue.COMMUNICATION)
    factor = told(one.device_factor, lambda factor: f"{rounded(factor)} x")
    return told(one.step_ns, milliseconds), milliseconds(one.waited_ns), caused, factor


def _group(place: int, one: LikeRanks) -> tuple[str, ...]:
    parts = {"experts": one.has_experts, "embedding": one.has_embedding, "loss": one.has_loss}
    also = ", ".join(name for name, runs in parts.items() if runs)
    kernels = (f"{one.attention_kernels:,}", f"{one.router_kernels:,}")
    return str(place + 1), f"{len(one.ranks):,}", told(one.step_ns, milliseconds), *kernels, also


def _by_kind(run: Run) -> str:
    parts = sorted(((ns, kind) for kind, ns in run.wait_by_kind_ns.items() if ns), reverse=True)
    shares = ", ".join(f"{percent(ns / run.wait_ns)} in {kind}" for ns, kind in parts[:NAMED])
    return f" ({shares})" if parts else ""


def _notes(run: Run, names: Names) -> Iterator[Words]:
    residual_ns = known(run.clocks.residual_ns)
    if run.clocks.aligned and residual_ns is not None:
        yield words(
            f"One clock for all ranks: ends of one collective lie {duration(residual_ns)} apart (median)."
        )
    elif isinstance(run.clocks.residual_ns, Missing):
        yield words(sentence(f"no common clock: {run.clocks.residual_ns.reason}"))
    steps = f" in {counted(run.steps, 'step')}" if run.steps else ""
    yield words(
        f"{counted(run.collectives, 'collective')} matched across ranks{steps}: waiting "
        f"{duration(run.wait_ns)}{_by_kind(run)}, data transfer {duration(run.transfer_ns)}, "
        "all ranks together."
    )
    if (ranks := known(run.world_size)) is not None and run.world_size_from is not None:
        yield words(f"Number of ranks, {ranks}: by ", Code(run.world_size_from), ", not recorded.")
    if (complete := known(run.complete_frac)) is not None:
        yield words(f"Every rank of the group was recorded for {percent(complete)} of communication time.")
    if (most := known(run.imbalance)) is not None:
        yield words(f"Largest expert work of a group of ranks: {rounded(most)} times the mean.")
    if (without := known(run.without)) is not None:
        yield words(
            f"Replayed, a step takes {milliseconds(without.step_ns)} ms, and "
            f"{milliseconds(without.without_ns)} ms without the cause."
        )
    late = known(run.late)
    if late is not None and late.by_step:
        who_was = [words("none") if one is None else names.full(one) for one in late.by_step[:_ROWS]]
        yield words("Late in each step, in order: ", joined(who_was), ".")


def merged_name(merged: Merged, place: int) -> Words:
    rank = known(merged.run.ranks[place].rank)
    return words(Code(merged.traces[place]) if rank is None else f"rank {rank}")


def run_headline(merged: Merged) -> Headline:
    """Where the run hangs, else who is late; what else is known of it stands below."""
    run, late = merged.run, known(merged.run.late)
    if merged.hang is not UNSET:
        return Headline("HANGS IN", words(hang_words(merged.hang)), Tone.BAD)
    if late is not None and late.cause is not Cause.NONE:
        label, tone = (
            ("SLOWED BY", Tone.BAD) if late.repair_first else ("A LATE RANK COSTS LITTLE", Tone.NOTICE)
        )
        return Headline(
            label, words(late_words(run, late, lambda place: plain(merged_name(merged, place)))), tone
        )
    if late is not None:
        return Headline(
            "NO LATE RANK",
            words("No rank stands out from how much ranks with the same work differ."),
            Tone.GOOD,
        )
    return Headline("LATE RANK UNKNOWN", words(_why_unknown(run)), Tone.NOTICE)


def _why_unknown(run: Run) -> str:
    reason = run.late.reason if isinstance(run.late, Missing) else "nothing was compared"
    return sentence(reason)


def page(merged: Merged) -> Page:
    run, size = merged.run, known(merged.run.world_size)
    name = partial(merged_name, merged)
    names = Names(name, name)
    seen = (
        counted(run.ranks_seen, "rank") if size is None else f"{run.ranks_seen:,} of {counted(size, 'rank')}"
    )
    facts = f"{seen}, {counted(run.collectives, 'collective')} in common, {counted(run.steps, 'step')}"
    blocks: list[Block] = [run_headline(merged), *hang_lines(merged, in_headline=True)]
    if run.ranks:
        blocks += lines_of(run, names, "steps unknown")
    blocks += witness_lines(merged.witness)
    if run.ranks:
        blocks.append(part_of(run, names))
    blocks += witness_part(merged.witness)
    blocks += items("Warnings", merged.warnings)
    return Page(words("run"), words(facts), tuple(blocks), Detail.FULL)
