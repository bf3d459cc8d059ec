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


def normal_lines(usual: Given) -> Blocks:
    """What such a run reaches elsewhere, in one line; what is missing where no such run is
    published.
    """
    if isinstance(usual, Missing):
        yield statement(f"Unknown: {usual.reason}; {usual.cure}.", _LABEL)
    elif usual:
        yield statement(_line(usual), _LABEL)


def _line(usual: NormalThroughput) -> str:
    text = f"Such runs reach {_range(usual.tokens_low, usual.tokens_high)} tokens/s and "
    text += f"{_range(usual.tflops_low, usual.tflops_high)} model TFLOP/s per GPU"
    if usual.mfu_low_frac is not None and usual.mfu_high_frac is not None:
        text += f", MFU {between(percent(usual.mfu_low_frac), percent(usual.mfu_high_frac))}"
    if usual.step_low_ns and usual.step_high_ns:
        text += f", {between(duration(usual.step_low_ns), duration(usual.step_high_ns))} a step"
    text += f", by {counted(len(usual.published), 'published run')}"
    if usual.counted:
        text += f" and {counted(len(usual.counted), 'measured change')}"
    stands = optional(" {}", usual.standing, words_of("stands").__getitem__)
    if usual.replayed_tokens_high is not None and usual.replayed_standing:
        rate = f"{rounded(usual.replayed_tokens_high)} tokens/s"
        replayed = f"at most {rate}, {words_of('stands_replayed')[usual.replayed_standing]}"
        stands += f" Replayed without its largest wall it has {replayed}."
    return f"{text}.{stands}"


def _range(low: float, high: float) -> str:
    return between(rounded(low), rounded(high))


def normal_details(usual: Given) -> Blocks:
    """The published runs, changes and differences that the range rests on."""
    if usual:
        yield from items("Published runs of this kind", usual.published)
        yield from items("Measured changes that are counted", usual.counted)
        yield from items("What else differs, and is not counted", usual.not_counted)
        yield from items("Sources of published runs", usual.sources)
