"""The walls of a run: the step as one bar, what each wall could save at most, and the evidence
behind it.

After the evidence comes what is next once a wall is gone, and the proofs of the replay.
"""

from collections import Counter
from functools import partial
from itertools import islice
from typing import Final

from heuristics.result.judged import Wall
from heuristics.result.result import Result, index_of, late_rank
from heuristics.run.repairs import REPAIRS
from heuristics.walls.verdict import by_family
from reports.content.analysis.called import called
from reports.content.analysis.headline import kind_name, main_kind
from reports.content.analysis.times import (
    Scale,
    all_windows_ns,
    figures_of,
    figures_table,
    mean_step_ns,
    per_step_ns,
    scale_of,
    written,
)
from reports.content.analysis.unproven import by_bandwidth, most_frac, open_walls, own_compute
from reports.content.blocks import (
    Bar,
    Block,
    BlockRow,
    Blocks,
    Command,
    Fold,
    Hue,
    Part,
    Piece,
    Span,
    Table,
    Term,
    Tone,
    Words,
    items,
    row,
    words,
)
from reports.content.moments import moments
from reports.content.names import (
    capital,
    joined,
    name_of,
    optional,
    piece_of,
    sentence,
    share_of,
    statement,
    titled,
    when,
)
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each, known_of, those
from traces.limits import WALL
from traces.missing import Missing, known
from traces.sections.rank import Rank
from traces.sections.tables import WallId
from traces.spelling import between, file_word, milliseconds, percent
from traces.steps.selection import seconds

_SHOWN: Final = {
    "communication": ("Communication is exposed for", "the GPU would wait for other work instead"),
    "host_overhead": ("The CPU is late for", "the late kernels wait for other work as well"),
}
"""Walls that the bar shows: what it says of each, and why its absence may save less."""
_FIGURES: Final = range(1, 3)
"""Columns of numbers between what they are of and why."""
_SEEN: Final = 3
"""Moments of a wall that are listed."""
_SMALL: Final = 0.01
_APART: Final = 0.05
"""Ranks whose steps differ by more are not alike: the longest is named."""


def step_bar(result: Result, rank: Rank) -> Bar:
    """One step of a rank, which is named where there are several."""
    scale, window_ns, parts = scale_of(rank), rank.budget_ns.window, _parts(rank)
    small = [name for name, (time_ns, _) in parts.items() if time_ns < _SMALL * window_ns]
    if len(small) > 1:
        parts["rest"] = (sum(parts.pop(name)[0] for name in small), Hue.IDLE)
    pieces = [
        Piece(name, time_ns / window_ns, scale.ms(time_ns), hue)
        for name, (time_ns, hue) in parts.items()
        if time_ns
    ]
    note = _beside(scale)
    if len(result.ranks) > 1:
        late = late_rank(result)
        waits = late and late.places and index_of(result, rank) not in late.places
        note = f"Of {called(result, rank)}{when(waits, ' (waits for others)')}. {note}"
    return Bar(f"One {scale.whole}", scale.length, tuple(pieces), words(note))


def _kind(wall: Wall, kind: str) -> Span:
    """A kind by its key, unless the wall's evidence names it closer."""
    kind_words = kind_name(wall, kind)
    return Term(kind) if kind_words == name_of(kind) else kind_words


def _parts(rank: Rank) -> dict[str, tuple[int, Hue]]:
    rows = those(rank.ledger or (), group="budget")
    if not rows:
        budget, comm_ns = rank.budget_ns, known(rank.budget_ns.exposed_comm)
        first = "compute" if comm_ns is not None else "busy"
        return {
            first: (budget.compute, Hue.COMPUTE),
            "communication": (comm_ns or 0, Hue.COMMUNICATION),
            "copies": (budget.exposed_copy, Hue.COPY),
            "nothing recorded": (budget.idle, Hue.IDLE),
        }
    parts = dict.fromkeys(words_of("piece").values(), (0, Hue.OTHER))  # in their order
    for ledger_row in rows:
        name, hue = piece_of(ledger_row.row)
        parts[name] = (parts.get(name, (0, hue))[0] + sum(ledger_row.per_step_ns), hue)
    return parts


def _beside(scale: Scale) -> str:
    rank, window_ns = scale.rank, scale.rank.budget_ns.window
    remarks = []
    if again_ns := rank.memory.recompute_ns:
        remarks.append(f"Recompute is {percent(again_ns / window_ns)} of the {scale.whole}")
    hidden_ns = rank.hidden_comm_ns or 0
    if hidden_ns >= _SMALL * window_ns:
        exposed_ns = rank.budget_ns.exposed_comm or 0
        exposed, hidden = scale.ms(exposed_ns), scale.ms(hidden_ns)
        remarks.append(f"communication: {exposed} ms exposed, {hidden} ms hidden")
    note = optional("{}. ", capital("; ".join(remarks)))
    if isinstance(rank.absent_ns, Missing) and rank.budget_ns.idle >= _SMALL * window_ns:
        note += f"Why nothing ran is unknown: {rank.absent_ns.reason}."
    return note


def savings(result: Result) -> Table:
    """Its note says why the bar shows much of what it calls cheap: its absence would not shorten
    the step.
    """
    unit = scale_of(result.ranks[0]).unit + when(_differ(result), ", mean")
    walls = sorted(result.walls, key=lambda wall: -_ceiling(result, wall))
    share = "of rest" if result.verdict.startup_ns else "share"
    note, whole_ns = "", all_windows_ns(result)
    for wall in result.walls:
        saved = wall.cost_frac or 0.0
        if wall.outcome != "clear" or wall.id not in _SHOWN:
            continue
        name, why = _SHOWN[wall.id]
        part = sum(_shown_ns(rank, wall.id) for rank in result.ranks) / whole_ns
        if part >= WALL.value and saved < part / 2:
            note += (
                f"{name} {percent(part)}, yet without it only {percent(saved)} is saved: {why}. "
            )
    return shaped("savings", map(partial(_row, result), walls), unit=unit, share=share, note=note)


def _shown_ns(rank: Rank, wall: WallId) -> int:
    if wall == "communication":
        return rank.budget_ns.exposed_comm or 0
    if not (absent := rank.absent_ns):
        return 0
    late = absent.launch_starved.items()
    return sum(ns for cause, ns in late if cause not in ("allocator", "profiler", "lazy_init"))


def _ceiling(result: Result, wall: Wall) -> float:
    """The share that a wall costs, its bound where even that is too small for one; unknown is below
    0.
    """
    share, most = known(wall.cost_frac), known(wall.at_most_frac)
    if share is None:
        share = -1.0
    elif wall.id == "memory" and wall.outcome == "clear":
        share = max(share, _copied_frac(result))
    if most is not None and wall.outcome != "finding" and wall not in open_walls(result):
        return max(share, most)
    return share


def _copied_frac(result: Result) -> float:
    """Exposed copies as part of what is judged: the most that they cost beside compute is what they
    take alone. 0 where that is less than a wall.
    """
    copied_ns = sum(each(result.ranks, "budget_ns.exposed_copy"))
    frac = copied_ns / max(1, all_windows_ns(result) - result.verdict.startup_ns)
    return min(1.0, frac) if frac >= WALL.value else 0.0


def _row(result: Result, wall: Wall) -> BlockRow:
    share, name = _ceiling(result, wall), capital(name_of(wall.id))
    if share < 0:
        most = most_frac(wall)
        bound_words = f"at most {percent(most)}" if most < 1 else "unknown"
        why = optional(": {}", "".join(wall.missing[:1]))
        return row((name, "", "", bound_words + why), _FIGURES, Tone.MUTED, wall.id)
    cost_ns = share * (all_windows_ns(result) - result.verdict.startup_ns)
    if share == wall.cost_frac:
        cost_ns = wall.cost_ns or cost_ns
    late, mostly, tone = late_rank(result), words(), Tone.PLAIN
    if wall.outcome == "finding":
        kind, tone = main_kind(wall), Tone.BAD
        kinds = [kind] if kind else [*by_family(wall.cost_by_kind_ns or {})][:2]
        mostly = joined(map(partial(_kind, wall), kinds))
    elif late and REPAIRS[late.cause].wall == wall.id:
        # in a wall that costs the run as a whole little
        mostly, tone = words(name_of(late.cause)), Tone.NOTICE
    elif wall.id == "memory" and share == _copied_frac(result) > 0.0:
        mostly, tone = words(name_of("exposed_copy")), Tone.NOTICE
    else:
        mostly = _apart_from(result, wall)
    amount = milliseconds(per_step_ns(result, cost_ns))
    cells = name, amount, share_of(share, Hue(words_of("wall_hue")[wall.id])), mostly
    return row(cells, _FIGURES, tone, wall.id)


def _apart_from(result: Result, wall: Wall) -> Words:
    """Most of the time that a price leaves out: what no known change acts on."""
    if wall.id == "compute" and (own := own_compute(result)):
        return words("apart from the inside of ", own.kernel)
    whole_ns = max(1, all_windows_ns(result))
    late_ns = each(known_of(result.ranks, "absent_ns"), "launch_starved")
    by_host_ns = sum(causes_ns.get("host_comm", 0) for causes_ns in late_ns)
    if wall.id == "communication" and by_host_ns:
        return words(f"on the GPU alone; by the host {percent(by_host_ns / whole_ns)}")
    if wall.id == "memory" and (streams := by_bandwidth(result)):
        return words(f"apart from bandwidth ({percent(streams[1])})")
    return words()


def alike(result: Result) -> str:
    lengths = _lengths(result)
    shares = sorted(each(result.ranks, "budget_frac.compute"))
    whole = " or ".join(sorted({*each(map(scale_of, result.ranks), "whole")}))
    length = between(milliseconds(lengths[0]), milliseconds(lengths[-1]))
    text = f"{whole} {length} ms, compute {between(percent(shares[0]), percent(shares[-1]))} of it"
    if _differ(result):
        text += f"; longest: {called(result, max(result.ranks, key=mean_step_ns))}"
    return text


def _lengths(result: Result) -> list[float]:
    return sorted(map(mean_step_ns, result.ranks))


def _differ(result: Result) -> bool:
    return _lengths(result)[-1] > (1 + _APART) * _lengths(result)[0]


def evidence(result: Result) -> Part:
    blocks = [*_verdict(result), *map(partial(_wall, result), result.walls)]
    for rank in result.ranks:
        if replay := rank.replay:
            of = when(len(result.ranks) > 1, f" of {called(result, rank)}")
            blocks.append(figures_table(f"Proofs of the replay{of}", figures_of(replay, "changes")))
    return titled("evidence", blocks)


def _verdict(result: Result) -> Blocks:
    verdict = result.verdict
    reasons = filter(None, (*verdict.because, verdict.next_because))
    yield from items("What the headline rests on", map(sentence, reasons))
    yield from items("What lowers the confidence", map(sentence, verdict.confidence_because))
    bound = verdict.bound
    bucket, share = verdict.largest_bucket, known(verdict.largest_bucket_frac)
    bound_by = (
        f"{capital(name_of(bound))}{words_of('bound_by').get(bound, '')}." if bound else "unknown."
    )
    if bucket and share is not None:
        bound_by += f" Largest part: {name_of(bucket)}, {percent(share)}."
    yield statement(bound_by, "Bound by")


def _wall(result: Result, wall: Wall) -> Fold:
    cost = optional(", at most {}", wall.cost_frac, percent)
    blocks = list[Block]()
    costs = [
        (Term(kind), milliseconds(per_step_ns(result, ns)))
        for kind, ns in Counter(wall.cost_by_kind_ns or {}).most_common()
        if ns
    ]
    if costs:
        blocks.append(shaped("kinds_of_cost", costs, unit=scale_of(result.ranks[0]).unit))
    if wall.evidence:
        rows = []
        for proof in wall.evidence:
            limit = optional("{}", proof.limit, partial(written, unit=proof.unit))
            why = proof.because + optional(", at {}", proof.start_ns, seconds)
            rows.append((Term(proof.measure), written(proof.value, proof.unit), limit, why))
        blocks.append(shaped("evidence", rows))
    # where a timeline shows it: what to type, and the place in that of the page
    shown_moments = islice(moments(wall), _SEEN) if len(result.traces) == 1 else ()
    for number, moment in enumerate(shown_moments, start=1):
        name = file_word(result.traces[0].name)
        at = wall.id if number == 1 else f"{wall.id}:{number}"
        shows = f"{capital(moment.shows)} in a timeline, at {seconds(moment.start_ns)}"
        line = f"moe-diag open {name} --at {at}"
        blocks.append(Command(shows, line, (moment.start_ns, moment.end_ns)))
    if room := wall.room:
        blocks.append(statement(f"{capital(room)}.", "Free GPU memory"))
    if wall.missing:
        cure = optional("To learn it: {}.", wall.cure)
        blocks += items("Missing", (*map(sentence, wall.missing), cure))
    return Fold(
        f"{capital(name_of(wall.id))}: {wall.outcome}{cost}", tuple(blocks), f"wall-{wall.id}"
    )
