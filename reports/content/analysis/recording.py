"""The recording itself: where it is from, how good it is, what it lacks and how to record that."""

from collections.abc import Iterator

from heuristics.result.result import Result
from reports.content.analysis.times import scale_of
from reports.content.blocks import Block, Code, Items, Part, Sentence, Words, items, table, words
from reports.content.names import capital, ended, gpu_of, how_to_learn, name_of, who
from reports.redaction import redaction_words
from reports.result.codec import gaps
from traces.missing import known
from traces.recording.recorder import recorded_by
from traces.sections.rank import Rank
from traces.sections.trace import Trace
from traces.spelling import percent


def recording(result: Result) -> Part:
    return Part("The recording", tuple(_blocks(result)), "recording")


def _blocks(result: Result) -> Iterator[Block]:
    yield Items(tuple(said for trace in result.traces for said in _trace(trace)), "Traces")
    yield Sentence(words(redaction_words(result.redacted)))
    yield from items("Warnings", (f"{one}." for one in result.warnings))
    yield table("Ranks", ("rank", "GPU", "steps", "ms", "compute"), map(_rank, result.ranks), range(2, 5))
    yield from items("What is missing, and how to learn it", _gaps(result))


def _trace(trace: Trace) -> Iterator[Words]:
    exporter = known(trace.exporter_version)
    recorder = recorded_by(trace.kind)
    version = "" if "version" in recorder.never else f" {exporter or 'of unknown version'}"
    layout = f"schema {known(trace.schema) or 'none'}, read by {trace.reader}"
    yield words(Code(trace.name), f": {recorder.name}{version}, {layout}")
    capture = trace.capture
    if (share := known(capture.correlation_frac)) is not None:
        yield words(f"{percent(share)} of the kernels have a recorded launch")
    if (longer := known(capture.perturbation_frac)) is not None:
        yield words(f"The recorded step is {percent(longer)} longer than one without the profiler")
    for note in capture.diagnostics:
        yield words(f"The recording notes: {note}")


def _rank(rank: Rank) -> tuple[str, ...]:
    process, ms = known(rank.process), scale_of(rank).ms(rank.budget_ns.window)
    whose = who(rank) + (f", process {process}" if process is not None else "")
    return whose, gpu_of(rank), str(len(rank.steps.used)), ms, percent(rank.budget_frac.compute)


def _gaps(result: Result) -> Iterator[Words]:
    """Gaps that have one reason and one cure together, by the names of what is missing."""
    together: dict[tuple[str, str], dict[str, None]] = {}
    for gap in gaps(result):
        name = name_of(gap.path.rpartition(".")[2].partition("[")[0])
        together.setdefault((gap.reason, gap.cure), {})[name] = None
    for (reason, cure), names in together.items():
        yield words(f"{capital(', '.join(names))}: {ended(reason)}{how_to_learn(cure)}")
