"""The experts of a run: where their work is uneven, and what that points to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Block, Column, Items, Quantity, Row, Table, Words, words
from reports.content.wording import ended
from traces.missing import Missing, known
from traces.ranks.cause import HotRank
from traces.sections.run import ExpertGroups, Run
from traces.spelling import counted, duration, rounded

_LISTED: Final = 8
"""Layers that a table has: the most uneven ones."""
_PATTERNS: Final[Mapping[HotRank, str]] = {
    HotRank.EVEN: "no rank has more than balanced routing leaves.",
    HotRank.SAME_RANK: "the same rank has the most in all layers: this points to the placement of experts.",
    HotRank.BY_LAYER: "another rank has the most by layer, the same in all steps: this points to routing.",
    HotRank.BY_STEP: "another rank has the most from step to step: this points to routing.",
}
_FORCED: Final = "Routing is forced to balance, so expert work shows nothing of real routing."
_MOCK: Final = "The data is mock data, so expert work shows nothing of real routing."
_MOCK_KNOB: Final = "data.mock"


def routing_notes(result: Result) -> tuple[Words, ...]:
    """What the configuration, the options or the log say that makes expert work no evidence of routing."""
    configuration = known(result.configuration)
    settings = () if configuration is None else configuration.settings
    mock = any(one.knob == _MOCK_KNOB and one.value is True for one in settings)
    found = ((_FORCED, result.forced_routing is True), (_MOCK, mock))
    return tuple(words(text) for text, holds in found if holds)


def experts(run: Run, name: Callable[[int], Words], notes: Sequence[Words] = ()) -> Iterator[Block]:
    """The most uneven layers and the pattern; nothing where no layers are known. `notes`: of the routing."""
    found = known(run.experts)
    if found is None:
        return
    most = sorted(found.uneven_layers, key=lambda one: -one.imbalance)
    columns = (
        Column("layer"), Column("group", number=True), Column("largest / mean", number=True), Column("rank"),
    )  # fmt: skip
    rows = tuple(
        Row(
            (
                words(str(one.layer)),
                Quantity(str(one.expert_group + 1)),
                Quantity(f"{rounded(one.imbalance)} x"),
                name(one.hot_index),
            )
        )
        for one in most[:_LISTED]
    )
    title = f"Expert work, {counted(len(found.groups), 'group')} of ranks that exchange tokens"
    note = words("GEMMs of experts, of a median step; layers as the rank counts them. The most uneven first.")
    yield Table(title, columns, rows, None, max(0, len(most) - _LISTED), note)
    yield Items((_pattern(found), _worst(found, name), *notes), "What it points to")


def _pattern(found: ExpertGroups) -> Words:
    if isinstance(found.pattern, Missing):
        return words(
            f"Whether routing or placement makes it uneven is unknown: {ended(found.pattern.reason)}"
        )
    if found.pattern is None:
        return words("Whether routing or placement makes it uneven is unknown.")
    text = _PATTERNS[found.pattern]
    return words(text[0].upper() + text[1:])


def _worst(found: ExpertGroups, name: Callable[[int], Words]) -> Words:
    worst = found.worst
    return words(
        f"Worst: layer {worst.layer} in step {worst.step}, ",
        *name(worst.hot_index),
        f": {rounded(worst.imbalance)} times the mean, {duration(worst.above_ns)} more.",
    )
