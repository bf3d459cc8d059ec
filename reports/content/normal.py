"""Is this throughput normal: one line, and what it rests on."""

from typing import Final

from msgspec import UnsetType

from heuristics.result.normal import NormalThroughput
from reports.content.blocks import Blocks, items
from reports.content.names import optional, statement
from reports.measures import words_of
from traces.missing import Missing, OrMissing
from traces.spelling import between, counted, duration, percent, rounded

_LABEL: Final = "Published"
Given = OrMissing[NormalThroughput] | UnsetType


def normal_lines(found: Given) -> Blocks:
    """What such a run reaches elsewhere, in one line; what is missing where no such run is
    published.
    """
    if isinstance(found, Missing):
        yield statement(f"Unknown: {found.reason}; {found.cure}.", _LABEL)
    elif value := found:
        yield statement(_line(value), _LABEL)


def _line(found: NormalThroughput) -> str:
    said = f"Such runs reach {_range(found.tokens_low, found.tokens_high)} tokens/s and "
    said += f"{_range(found.tflops_low, found.tflops_high)} model TFLOP/s per GPU"
    if found.mfu_low_frac is not None and found.mfu_high_frac is not None:
        said += f", MFU {between(percent(found.mfu_low_frac), percent(found.mfu_high_frac))}"
    if found.step_low_ns and found.step_high_ns:
        said += f", {between(duration(found.step_low_ns), duration(found.step_high_ns))} a step"
    said += f", by {counted(len(found.published), 'published run')}"
    if found.counted:
        said += f" and {counted(len(found.counted), 'measured change')}"
    stands = optional(" {}", found.standing, words_of("stands").__getitem__)
    if found.replayed_tokens_high is not None and found.replayed_standing:
        rate = f"{rounded(found.replayed_tokens_high)} tokens/s"
        replayed = f"at most {rate}, {words_of('stands_replayed')[found.replayed_standing]}"
        stands += f" Replayed without its largest wall it has {replayed}."
    return f"{said}.{stands}"


def _range(low: float, high: float) -> str:
    return between(rounded(low), rounded(high))


def normal_details(found: Given) -> Blocks:
    """The published runs, changes and differences that the range rests on."""
    if value := found:
        yield from items("Published runs of this kind", value.published)
        yield from items("Measured changes that are counted", value.counted)
        yield from items("What else differs, and is not counted", value.not_counted)
        yield from items("Sources of published runs", value.sources)
