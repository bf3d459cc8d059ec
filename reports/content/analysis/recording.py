"""The recording itself: where it is from, how good it is, what it lacks and how to record that."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from heuristics.result.result import Result
from reports.content.analysis.times import scale_of
from reports.content.blocks import Blocks, Code, Part, Words, filled, items, words
from reports.content.names import (
    capital,
    ended,
    gpu_of,
    how_to_learn,
    name_of,
    optional,
    statement,
    titled,
    who,
)
from reports.content.tables import shaped
from reports.redaction import redaction_words
from reports.result.codec import gaps
from traces.recording.recorder import recorded_by
from traces.sections.trace import Trace
from traces.spelling import percent


def recording(result: Result) -> Part:
    return titled("recording", _blocks(result))


def _blocks(result: Result) -> Blocks:
    yield from items("Traces", chain.from_iterable(map(_trace, result.traces)))
    yield statement(redaction_words(result.redacted))
    yield from items("Warnings", map("{}.".format, result.warnings))
    rows = []
    for rank in result.ranks:
        whose = who(rank) + optional(", process {}", rank.process)
        figures = scale_of(rank).ms(rank.budget_ns.window), percent(rank.budget_frac.compute)
        rows.append((whose, gpu_of(rank), f"{len(rank.steps.used)}", *figures))
    yield shaped("recorded_ranks", rows)
    # gaps that have one reason and one cure together, by the names of what is missing
    together = defaultdict[tuple[str, str], dict[str, None]](dict)
    for gap in gaps(result):
        name = name_of(gap.path.rpartition(".")[2].partition("[")[0])
        together[gap.reason, gap.cure][name] = None
    missing = (
        f"{capital(', '.join(names))}: {ended(reason)}{how_to_learn(cure)}"
        for (reason, cure), names in together.items()
    )
    yield from items("What is missing, and how to learn it", missing)


def _trace(trace: Trace) -> Iterator[Words]:
    recorder = recorded_by(trace.kind)
    origin = recorder.name
    if "version" not in recorder.never:
        origin += f" {trace.exporter_version or 'of unknown version'}"
    read = f"schema {trace.schema or 'none'}, read by {trace.reader}"
    yield words(Code(trace.name), f": {origin}, {read}")
    capture, longer = trace.capture, "The recorded step is {} longer than one without the profiler"
    notes = (
        optional("{} of the kernels have a recorded launch", capture.correlation_frac, percent),
        optional(longer, capture.perturbation_frac, percent),
        *map("The recording notes: {}".format, capture.diagnostics),
    )
    yield from filled(notes)
