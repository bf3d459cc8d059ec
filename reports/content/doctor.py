"""Is a recording good enough, as a page: what it holds and lacks, a grade for each wall, how to record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heuristics.evidence.fitness import Fitness, Grade, fitness
from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Column,
    Detail,
    Headline,
    Items,
    Page,
    Quantity,
    Row,
    Sentence,
    Table,
    Tone,
    Words,
    words,
)
from reports.content.names import name_of
from reports.content.quantities import duration, percent
from traces.columns import TraceInfo
from traces.cures import cure
from traces.measure.capture import Capture
from traces.recording_line import recording_line

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
_NOT_IN_KINETO: Final = frozenset({"OS calls", "GPU counter samples"})
_TONES: Final[dict[Grade, Tone]] = {"good": Tone.GOOD, "usable": Tone.NOTICE, "useless": Tone.BAD}
_COUNTERS: Final = "--gpu-metrics-devices=cuda-visible"


def page(info: TraceInfo, capture: Capture) -> Page:
    """The page of `moe-diag doctor TRACE`."""
    facts = words(f"{info.kind}, schema {info.schema or 'unknown'}")
    walls = fitness(info, capture)
    lacking = [row for row in _LACKING if not capture.rows[row] and not _never(info, row)]
    blocks = (
        *(_headline(walls), _recorded(capture), *_missing(info, capture, lacking), *_notes(info)),
        *(_grades(walls), *_line(info, lacking)),
    )
    return Page(words(Code(info.name)), facts, blocks, Detail.FULL)


def _never(info: TraceInfo, row: str) -> bool:
    """Whether this kind of recording never holds it."""
    return info.kind == "kineto" and row in _NOT_IN_KINETO


def _recorded(capture: Capture) -> Table:
    rows = tuple(Row((words(name), Quantity(f"{count:,}"))) for name, count in capture.rows.items() if count)
    launched = capture.correlation_frac
    note = (
        () if launched is None else words(f"{percent(launched)} of the kernels have their launch recorded.")
    )
    return Table("Recorded", (Column("What"), Column("Count", number=True)), rows, note=note)


def _missing(info: TraceInfo, capture: Capture, lacking: list[str]) -> Iterator[Block]:
    items = [words(f"no {row}: {_impossible(row, capture)}.") for row in lacking]
    items += [*_clocks(capture), *_graphs(info, capture)]
    if items:
        yield Items(tuple(items), "Missing, and what that makes impossible")
    else:
        yield Sentence(words("Nothing that the diagnosis uses is missing."))


def _impossible(row: str, capture: Capture) -> str:
    if row == "kernels" and capture.rows["graph replays"]:
        return "compute and communication inside graph replays cannot be separated"
    return _LACKING[row]


def _clocks(capture: Capture) -> Iterator[Words]:
    for (process, device), offset_ns in capture.clock_offset_ns.items():
        if offset_ns:
            apart = f"{'-' if offset_ns < 0 else ''}{duration(abs(offset_ns))}"
            yield words(
                f"process {process}, GPU {device}: nothing starts within 50 us of its launch, so host and "
                f"GPU clocks may differ by about {apart}: why no compute ran is unknown."
            )


def _graphs(info: TraceInfo, capture: Capture) -> Iterator[Words]:
    if capture.opaque_graph_launches:
        yield words(
            f"{capture.opaque_graph_launches:,} of {capture.graph_launches:,} CUDA graph launches show no "
            f"work: idle time may be work. Cure: {cure('graphs', info.kind)}."
        )


def _notes(info: TraceInfo) -> Iterator[Block]:
    if info.diagnostics:
        yield Items(tuple(words(f"{one}.") for one in info.diagnostics), "Notes of the profiler")


def _grades(walls: tuple[Fitness, ...]) -> Table:
    columns = (Column("Wall"), Column("This recording is"), Column("Why"))
    rows = tuple(
        Row(
            (words(name_of(one.wall)), words(one.grade), words("; ".join(one.because))),
            tone=_TONES[one.grade],
        )
        for one in walls
    )
    return Table("Good enough for", columns, rows)


def _line(info: TraceInfo, lacking: list[str]) -> Iterator[Block]:
    """How to record what is missing, all in one line."""
    yield Sentence(words("Record it like this, with what is missing:"))
    kineto = info.kind == "kineto"
    yield CodeBlock(recording_line(info.kind, lacking), "python" if kineto else "sh")
    if "memory events" in lacking and not kineto:
        yield Sentence(
            words(
                "Memory use is known only where the recording begins with the program. Without it, a few "
                "steady steps are enough: in place of --cuda-memory-usage and --duration ",
                Code("-c cudaProfilerApi --capture-range-end=stop"),
                ".",
            )
        )
    if "GPU counter samples" in lacking:
        yield Sentence(words("Where you may read GPU counters, add ", Code(_COUNTERS), "."))


def _headline(walls: tuple[Fitness, ...]) -> Headline:
    """How good it is for each wall, the whole as good as its worst."""
    said = ", ".join(f"{name_of(one.wall)} {one.grade}" for one in walls)
    grades = {one.grade for one in walls}
    if "useless" not in grades:
        worst: Grade = "usable" if "usable" in grades else "good"
        return Headline(f"{worst.upper()} FOR A DIAGNOSIS", words(f"{said}."), _TONES[worst])
    label = "NOT FIT FOR A DIAGNOSIS" if grades == {"useless"} else "PARTLY USELESS"
    return Headline(label, words(f"{said}."), Tone.BAD)
