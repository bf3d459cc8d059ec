"""Layouts of a model on some GPUs, in the order to try them: the whole of `plan`, as one
document.
"""

from typing import Literal

from heuristics.result.judged import Knobs
from heuristics.result.normal import NormalThroughput
from heuristics.result.tool import OfKind
from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Section
from traces.sizes.memory import MemoryEstimate
from traces.texts import CommandLine, FileName, Key, Keys, Said, Sentences, Typed

Room = Literal["room", "tight", "none"]
"""How an estimate fits a GPU: with the head room, nearly full, or not at all."""

Granularity = Literal["none", "selective", "full"]


class LayoutCost(Section):
    """What one rule of the ranking asks of a layout, as part of the time of the compute alone."""

    rule: Key
    frac: float
    text: Said


class NearRun(Section):
    """A published run whose layout is near this one, and how near: 1 is the same on the same
    machine.
    """

    text: Said
    layout: Said
    nearness: float
    source: Said


class PlannedLayout(Section):
    """One layout. `own`: the given configuration's. `stages`: its stages by letters, where they are
    uneven.

    `cost_frac`: the sum of `costs`, which orders the list and is no prediction.
    `without_recompute_bytes`: the same layout when everything is kept. `broken`: rules that refuse
    it, of the own layout alone.
    """

    place: Count
    own: bool
    tp: Count
    cp: Count
    pp: Count
    vpp: Count | None
    ep: Count
    etp: Count
    dp: Count
    micro_batch: Count
    microbatches: OrMissing[int]
    stages: Typed | None
    recompute: Granularity
    recompute_modules: Keys
    dispatcher: Key
    room: Room
    filled_frac: float
    memory: OrMissing[MemoryEstimate]
    without_recompute_bytes: OrMissing[int]
    cost_frac: float
    costs: tuple[LayoutCost, ...]
    because: Sentences
    nearest: tuple[NearRun, ...]
    unknown: Sentences
    broken: Sentences
    knobs: Knobs


class CountedLayouts(Section):
    """How many layouts were looked at: that divide, are too large in every way, are refused by a
    rule.
    """

    divide: Count
    too_large: Count
    refused: Count
    fit: Count


class Layouts(OfKind, kw_only=True):
    """Legal layouts that fit, the first to try first; version 1.x of its JSON document."""

    kind: Literal["layouts"]
    command: CommandLine
    about: FileName
    model: Said
    gpu: Key
    gpus: Count
    nvlink_domain: Count
    capacity_bytes: Bytes
    precision: Key
    global_batch: Count
    seq_length: Count
    parameters_count: Count
    active_count: Count
    assumed: Sentences
    unknown: Sentences
    counted: CountedLayouts
    layouts: tuple[PlannedLayout, ...]
    least_bytes: Bytes | None
    """The smallest estimate of all that divide, where none fits."""
    normal: OrMissing[NormalThroughput]
