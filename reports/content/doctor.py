"""Is a recording good enough, as a page: what it holds and lacks, a grade for each wall, how to
record.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from heuristics.evidence.fitness import fitness
from heuristics.result.result import Result
from reports.content.blocks import (
    Blocks,
    Code,
    CodeBlock,
    Command,
    Headline,
    Quantity,
    Tone,
    items,
    row,
    words,
)
from reports.content.capture import commands
from reports.content.names import name_of, optional, statement, when
from reports.content.page import Detail, Page
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each
from traces.columns import TraceInfo
from traces.cures import cure
from traces.measure.capture import Capture
from traces.recording.line import passes, profiler_call, question_for, recording
from traces.recording.recorder import TORCH, recorded_by
from traces.recording.traps import Trap
from traces.spelling import counted, duration, percent

_TONES: Final = {"good": Tone.GOOD, "usable": Tone.NOTICE, "useless": Tone.BAD}
_CAPTURE: Final = "moe-diag capture --for"


def page(
    info: TraceInfo,
    capture: Capture,
    traps: Collection[tuple[Trap, int]],
    result: Result | None,
) -> Page:
    """The page of `moe-diag doctor TRACE`; `traps`: how it went wrong, and how many rows show that.

    `result`: what a diagnosis makes of it, None where it makes nothing.
    """
    facts = words(f"{info.kind}, schema {info.schema or 'unknown'}")
    walls = fitness(info, capture, result)
    never = recorded_by(info.kind).never
    lacking = [name for name in words_of("lacking") if not capture.rows[name] and name not in never]
    counts = ((name, f"{count:,}") for name, count in capture.rows.items() if count)
    launched = "{} of the kernels have their launch recorded."
    launched = optional(launched, capture.correlation_frac, percent)
    called, grades = words_of("trap"), []
    wrong = [called[trap.name.lower()].format(count=f"{count:,}") for trap, count in traps]
    for fit in walls:
        cells = name_of(fit.wall), fit.grade, "; ".join(fit.because)
        grades.append(row(cells, (), _TONES[fit.grade]))
    wall_grades = ", ".join(f"{name_of(wall.wall)} {wall.grade}" for wall in walls)
    given = {*each(walls, "grade")}
    worst = max(given, key=[*_TONES].index)
    label = f"{worst.upper()} FOR A DIAGNOSIS"
    if worst == "useless":
        label = "PARTLY USELESS" if len(given) > 1 else "NOT FIT FOR A DIAGNOSIS"
    blocks = (
        Headline(label, words(f"{wall_grades}."), _TONES[worst]),
        shaped("recorded", counts, launched=launched),
        *_missing(info, capture, lacking),
        *items("Wrong in how it was recorded or exported", wrong),
        *items("Notes of the profiler", map("{}.".format, info.diagnostics)),
        shaped("good_enough", grades),
        *_line(info, lacking),
    )
    return Page(words(Code(info.name)), facts, blocks, Detail.FULL)


def page_of_several(name: str, examined: Sequence[tuple[str, Page | str]]) -> Page:
    """The page of a folder or a pattern: a line a recording, and how to see one whole.

    `examined`: the name of each with its page, or with why it cannot be read.
    """
    rows, alike, tones = [], Counter[str](), [Tone.GOOD]
    for place, page_or_why in examined:
        label, why, tone = "unreadable", words(f"{page_or_why}"), Tone.BAD
        if isinstance(page_or_why, Page):
            (headline,) = page_or_why.of_kind(Headline)
            label = headline.label.lower().removesuffix(" for a diagnosis")
            why, tone = headline.said, headline.tone
        alike[label] += 1
        tones.append(tone)
        rows.append(row((words(Code(place)), Quantity(label), why), (), tone))
    tone = max(tones, key=[*_TONES.values()].index)
    label_counts = ", ".join(f"{count} {label}" for label, count in alike.items())
    blocks = (
        Headline(counted(len(rows), "recording").upper(), words(f"{label_counts}."), tone),
        shaped("recordings", rows),
        Command("One of them, with what it lacks and how to record that:", "moe-diag doctor FILE"),
    )
    return Page(words(Code(name)), words("examined one by one"), blocks, Detail.FULL)


def _missing(info: TraceInfo, capture: Capture, lacking: list[str]) -> Blocks:
    impossible, replays = {**words_of("lacking")}, capture.rows["graph replays"]
    if replays:
        impossible["kernels"] = "compute and communication inside graph replays cannot be separated"
    lacks = [f"no {name}: {impossible[name]}." for name in lacking]
    for (process, device), offset_ns in capture.clock_offset_ns.items():
        if offset_ns:
            apart = f"{when(offset_ns < 0, '-')}{duration(abs(offset_ns))}"
            lacks.append(
                f"process {process}, GPU {device}: nothing starts within 50 us of its launch, so "
                f"host and GPU clocks may differ by about {apart}: why no compute ran is unknown."
            )
    how = f"Cure: {cure('graphs', info.kind)}."
    if replays and capture.rows["kernels"]:
        whole = "graph replays were recorded whole: communication in them counts as compute"
        lacks.append(f"{replays:,} {whole}. {how}")
    if opaque := capture.opaque_graph_launches:
        launches = f"{opaque:,} of {capture.graph_launches:,} CUDA graph launches"
        lacks.append(f"{launches} show no work: idle time may be work. {how}")
    yield from items("Missing, and what that makes impossible", lacks)
    if not lacks:
        yield statement("Nothing that the diagnosis uses is missing.")


def _line(info: TraceInfo, lacking: list[str]) -> Blocks:
    if recorded_by(info.kind) is TORCH:
        yield statement("Record it like this, with what is missing:")
        yield CodeBlock(profiler_call(lacking), "python")
        return
    question = question_for(lacking)
    yield from commands(recording(question))
    yield Command("With the framework's flags:", f"{_CAPTURE} {question}")
    for other in passes(lacking):
        yield Command(words_of("pass")[other], f"{_CAPTURE} {other}")
