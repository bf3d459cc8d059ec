"""Is a recording good enough, as a page: what it holds and lacks, a grade for each wall, how to record."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from heuristics.evidence.fitness import Fitness, Grade, fitness
from heuristics.result.result import Result
from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Command,
    Detail,
    Headline,
    Page,
    Quantity,
    Row,
    Sentence,
    Tone,
    items,
    row,
    table,
    words,
)
from reports.content.capture import commands
from reports.content.names import name_of
from traces.columns import TraceInfo
from traces.cures import cure
from traces.measure.capture import Capture
from traces.recording.line import passes, profiler_call, question_for, recording
from traces.recording.options import Question
from traces.recording.recorder import TORCH, recorded_by
from traces.recording.traps import Trap
from traces.spelling import counted, duration, percent

_LACKING: Final = {
    "kernels": "nothing can be diagnosed",
    "CUDA calls": "without launches it is unknown why no compute ran",
    "NVTX ranges": "steps are found by their pattern, phases and layers stay unknown",
    "event records": "waits between streams are inferred",
    "memory events": "free GPU memory is unknown",
    "OS calls": "waits of the host for the operating system look like Python",
    "GPU counter samples": "how busy the SMs are inside kernels is not measured",
}
"""What was not recorded -> what that makes impossible."""
_TRAPS: Final = {
    Trap.UNREAD_RANGES: "{count} domains of NVTX without any range: most often the program's NVTX library is "
    "newer than nsys can read. Record with a newer nsys, or with Python's nvtx before 0.2.12.",
    Trap.OPEN_RANGES: "{count} NVTX ranges end with the recording: unless they ended it, they were still "
    "open, and how long they lasted is unknown. End the recording between steps.",
    Trap.PARTIAL_EXPORT: "the export holds some tables or some of the time only: what is missing here may be "
    "in the report. Export that again without --tables and --times.",
    Trap.NO_PAYLOADS: "{count} calls of NCCL without payloads: bytes and peers are unknown. NCCL 2.25 or "
    "later notes them; export the report with --include-blobs=true, by a recent nsys.",
    Trap.CPU_SAMPLES: "{count} samples of the CPU or switches of threads: they slow the host, and no "
    "diagnosis uses them. Record with --sample=none --cpuctxsw=none.",
}
"""How a recording or its export went wrong -> what that means and what to do."""
_TONES: Final[dict[Grade, Tone]] = {"good": Tone.GOOD, "usable": Tone.NOTICE, "useless": Tone.BAD}
_CAPTURE: Final = "moe-diag capture --for"
_PASSES: Final = {
    Question.MEMORY: "Memory in use, from the program's start:",
    Question.METRICS: "GPU counters, in a pass of their own:",
}


def page(
    info: TraceInfo,
    capture: Capture,
    traps: Collection[tuple[Trap, int]] = (),
    result: Result | None = None,
) -> Page:
    """The page of `moe-diag doctor TRACE`; `traps`: how it went wrong, and how many rows show that.

    `result`: what a diagnosis makes of it, None where it makes nothing.
    """
    facts = words(f"{info.kind}, schema {info.schema or 'unknown'}")
    walls = fitness(info, capture, result)
    never = recorded_by(info.kind).never
    lacking = [name for name in _LACKING if not capture.rows[name] and name not in never]
    counts = ((name, f"{count:,}") for name, count in capture.rows.items() if count)
    launched = capture.correlation_frac
    note = "" if launched is None else f"{percent(launched)} of the kernels have their launch recorded."
    wrong = (_TRAPS[trap].format(count=f"{count:,}") for trap, count in traps)
    grades = (
        row((name_of(one.wall), one.grade, "; ".join(one.because)), (), _TONES[one.grade]) for one in walls
    )
    blocks = (
        _headline(walls),
        table("Recorded", ("What", "Count"), counts, note=note),
        *_missing(info, capture, lacking),
        *items("Wrong in how it was recorded or exported", wrong),
        *items("Notes of the profiler", (f"{one}." for one in info.diagnostics)),
        table("Good enough for", ("Wall", "This recording is", "Why"), grades, ()),
        *_line(info, lacking),
    )
    return Page(words(Code(info.name)), facts, blocks, Detail.FULL)


def page_of_several(name: str, found: Sequence[tuple[str, Page | str]]) -> Page:
    """The page of a folder or a pattern: a line a recording, and how to see one whole.

    `found`: the name of each with its page, or with why it cannot be read.
    """
    rows = [_in_a_line(one, of) for one, of in found]
    alike = Counter(one.cells[1].text for one in rows if isinstance(one.cells[1], Quantity))
    tone = max((one.tone for one in rows), key=[Tone.GOOD, Tone.NOTICE, Tone.BAD].index)
    said = ", ".join(f"{count} {label}" for label, count in alike.items())
    blocks = (
        Headline(counted(len(rows), "recording").upper(), words(f"{said}."), tone),
        table("Good enough for", ("Recording", "A diagnosis", "Walls, or why not"), rows, ()),
        Command(words("One of them, with what it lacks and how to record that:"), "moe-diag doctor FILE"),
    )
    return Page(words(Code(name)), words("examined one by one"), blocks, Detail.FULL)


def _in_a_line(name: str, of: Page | str) -> Row:
    headline = None if isinstance(of, str) else next(b for b in of.blocks if isinstance(b, Headline))
    if headline is None:
        return row((words(Code(name)), Quantity("unreadable"), words(str(of))), (), Tone.BAD)
    label = headline.label.lower().removesuffix(" for a diagnosis")
    return row((words(Code(name)), Quantity(label), headline.said), (), headline.tone)


def _missing(info: TraceInfo, capture: Capture, lacking: list[str]) -> Iterator[Block]:
    lacks = [f"no {name}: {_impossible(name, capture)}." for name in lacking]
    lacks += [*_clocks(capture), *_graphs(info, capture)]
    yield from items("Missing, and what that makes impossible", lacks)
    if not lacks:
        yield Sentence(words("Nothing that the diagnosis uses is missing."))


def _impossible(name: str, capture: Capture) -> str:
    if name == "kernels" and capture.rows["graph replays"]:
        return "compute and communication inside graph replays cannot be separated"
    return _LACKING[name]


def _clocks(capture: Capture) -> Iterator[str]:
    for (process, device), offset_ns in capture.clock_offset_ns.items():
        if offset_ns:
            apart = f"{'-' if offset_ns < 0 else ''}{duration(abs(offset_ns))}"
            yield (
                f"process {process}, GPU {device}: nothing starts within 50 us of its launch, so host and "
                f"GPU clocks may differ by about {apart}: why no compute ran is unknown."
            )


def _graphs(info: TraceInfo, capture: Capture) -> Iterator[str]:
    how = f"Cure: {cure('graphs', info.kind)}."
    if (replays := capture.rows["graph replays"]) and capture.rows["kernels"]:
        yield f"{replays:,} graph replays were recorded whole: communication in them counts as compute. {how}"
    if opaque := capture.opaque_graph_launches:
        launches = f"{opaque:,} of {capture.graph_launches:,} CUDA graph launches"
        yield f"{launches} show no work: idle time may be work. {how}"


def _line(info: TraceInfo, lacking: list[str]) -> Iterator[Block]:
    if recorded_by(info.kind) is TORCH:
        yield Sentence(words("Record it like this, with what is missing:"))
        yield CodeBlock(profiler_call(lacking), "python")
        return
    question = question_for(lacking)
    yield from commands(recording(question))
    yield Command(words("With the framework's flags:"), f"{_CAPTURE} {question}")
    for other in passes(lacking):
        yield Command(words(_PASSES[other]), f"{_CAPTURE} {other}")


def _headline(walls: tuple[Fitness, ...]) -> Headline:
    said = ", ".join(f"{name_of(one.wall)} {one.grade}" for one in walls)
    grades = {one.grade for one in walls}
    if "useless" not in grades:
        worst: Grade = "usable" if "usable" in grades else "good"
        return Headline(f"{worst.upper()} FOR A DIAGNOSIS", words(f"{said}."), _TONES[worst])
    label = "NOT FIT FOR A DIAGNOSIS" if grades == {"useless"} else "PARTLY USELESS"
    return Headline(label, words(f"{said}."), Tone.BAD)
