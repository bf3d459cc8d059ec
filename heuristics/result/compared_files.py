"""Two runs compared by their configurations and logs alone: the whole of it, as one document.

Keys that a comparison of recordings has too (compared.py) mean the same here. Differences are new
less base, positive is slower; integers of time are in ns.
"""

from typing import Literal

from heuristics.result.compared import Change, PossibleCause, TwoRuns
from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Frac, Ns, Section
from traces.settings.settings import Framework
from traces.texts import FileName, GivenText, Key, Keys, Place, Said

DriftState = Literal["rising", "falling", "none"]
MemoryFigure = Literal["allocated", "peak_allocated", "reserved", "peak_reserved"]
Here = Literal["same", "near", "other"]
Explained = Literal["step", "drift", "memory", "out_of_memory"]


class DriftOf(Section):
    """How a figure of a log moves from its first iteration to its last, by a line through its
    blocks.

    `change` is from `first` to `last`, in the figure's unit, `each_low` to `each_high` its 95 %
    interval per iteration. `chance`: how likely unordered values show as much. `jump_at`: the
    iteration at which it jumps once, where that fits better than a line.
    """

    state: DriftState
    first: int
    last: int
    change: int
    change_frac: float
    each: float
    each_low: float
    each_high: float
    chance: Frac
    count: Count
    jump_at: Count | None


class MemoryOf(Section):
    """One figure of memory that a log reports: the most of any report, and how one rank's reports
    move.
    """

    figure: MemoryFigure
    most_bytes: Bytes
    reports_count: Count
    drift: OrMissing[DriftOf]


class FilesLog(Section):
    """What a log says of a run's steps; warm-up and what is far above the rest are `left_out`, by
    reason.

    `low_ns` and `high_ns` hold the middle 80 % of the steady iterations. `out_of_memory`: how many
    such errors it holds.
    """

    name: FileName
    iteration_count: Count
    steady_count: Count
    left_out: dict[Key, Count]
    first_iteration: OrMissing[Count]
    last_iteration: OrMissing[Count]
    median_ns: OrMissing[Ns]
    mean_ns: OrMissing[Ns]
    low_ns: OrMissing[Ns]
    high_ns: OrMissing[Ns]
    drift: OrMissing[DriftOf]
    tflops_per_gpu: OrMissing[float]
    tokens_per_s_per_gpu: OrMissing[float]
    global_batch_size: OrMissing[Count]
    memory: tuple[MemoryOf, ...]
    out_of_memory: Count


class FilesSide(Section):
    """One side. `config`: the name of its file, None without one. `defaults_count`: settings at a
    default.
    """

    name: FileName
    config: FileName | None
    framework: OrMissing[Framework]
    gpu: OrMissing[Key]
    versions: dict[Key, GivenText]
    settings_count: Count
    defaults_count: Count
    legal: bool | None
    problems_count: Count
    log: OrMissing[FilesLog]


class EffectiveChange(Change):
    """One setting, version or variable that the two runs have otherwise.

    `base_said`, `new_said`: where it was set, `default` where nobody did. `effect`: `none` where it
    differs and does nothing on either side, as `because` says.
    """

    source: Literal["configuration", "log", "given"]
    base_said: Place
    new_said: Place
    effect: Literal["may", "none"]
    because: Said = ""


class MeasuredElsewhere(Section):
    """One published measurement of the same change, in the direction in which it was made here.

    `here`: whether it was made on the same GPU and model, on the same generation of GPUs, or on
    others.
    """

    of: Said
    source: Said
    here: Here
    step_frac: OrMissing[float]
    memory_frac: OrMissing[float]


class Explanation(PossibleCause):
    """A known change that the two configurations make, with what it did elsewhere.

    `explains`: what of the difference between the logs it can explain. `step_low_frac` to
    `step_high_frac`: what it does to a step here, by the nearest measurements, taken wider as they
    were made elsewhere. `fit`: `covers` where the size observed is in that range, `direction` where
    only its direction is, `against` where neither, `open` where no size is known. `knobs`: the
    settings that differ for it.
    """

    knobs: Keys
    fit: Literal["covers", "direction", "against", "open"]
    explains: tuple[Explained, ...]
    step_low_frac: OrMissing[float]
    step_high_frac: OrMissing[float]
    measured: tuple[MeasuredElsewhere, ...]


class Together(Section):
    """All explanations of the step at once: what their ranges come to, and whether that covers the
    size.
    """

    ids: Keys
    step_low_frac: float
    step_high_frac: float
    covers: bool | None


class ComparedFiles(TwoRuns, kw_only=True):
    """One comparison of configurations and logs, version 1.x of its JSON document."""

    kind: Literal["files_comparison"]
    base: FilesSide
    new: FilesSide
    changed: tuple[EffectiveChange, ...]
    explanations: tuple[Explanation, ...]
    together: Together | None
