"""What throughput is normal for a run: published runs of its model on its GPU, and what each change
costs.

Only where such a run is published. Each published row is taken with the preset of Bridge's scripts
for its model and GPU, where there is one, as that is what ran; what differs in effect is looked up
among the measured changes, whose range widens the result. What differs and was measured nowhere is
listed, not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp
from typing import Final

from msgspec.structs import replace as with_fields

from heuristics.comparison.comparable import FORCE
from heuristics.comparison.files.differences import differences
from heuristics.comparison.files.explain import Made, made_changes, part_of_step
from heuristics.comparison.files.side import FileSide
from heuristics.config.about import Given
from heuristics.config.hardware import gpu_family
from heuristics.config.logic import each_once
from heuristics.fixes.dispatcher import set_to
from heuristics.result.normal import NormalThroughput, Standing
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import Limit
from traces.missing import Missing, OrMissing
from traces.settings.knobs import GLOBAL_BATCH
from traces.settings.model_names import model_names_by_id
from traces.settings.read import configuration_of
from traces.settings.settings import KnobView, Settings, Value
from traces.sizes.model import ModelSize, model_size
from traces.sizes.peaks import peak, peak_precision
from traces.sizes.references import (
    Reference,
    nearest,
    nearest_references,
    references,
)
from traces.sizes.throughput import flops_per_token
from traces.spelling import between, rounded
from traces.toml_tables import read_table

_PATH: Final = "normal"
NEAREST: Final = Limit(
    4, "published rows", "ours: the nearest ones; older releases of a row are slower"
)
WIDEST: Final = Limit(
    3.0, "times", "ours: beyond it changes that were measured elsewhere no longer bear on this run"
)


@dataclass(slots=True)
class _Brought:
    """A published row brought here: how much longer a step is at least and at most, as natural
    logarithms.
    """

    row: Reference
    low: float = 0.0
    high: float = 0.0
    made: list[Made] = field(default_factory=list)
    left: list[Made] = field(default_factory=list)
    """Changes that were measured on other models and GPUs alone: they say too little here."""

    @property
    def tokens_low(self) -> float:
        return self.row.tokens_per_s_per_gpu / min(exp(self.high), WIDEST.value)

    @property
    def tokens_high(self) -> float:
        return self.row.tokens_per_s_per_gpu / max(exp(self.low), 1 / WIDEST.value)


@cache
def _table() -> dict[str, dict[str, str]]:
    return read_table("heuristics.comparison.files", "normal.toml", dict[str, dict[str, str]])


def normal_throughput(run: Run) -> NormalThroughput | Missing:
    """The range for a run; Missing says what is not published, or not known of it."""
    settings, gpu = run.config.settings, gpu_family(run.gpu or "") or run.gpu
    model = model_size(settings)
    if isinstance(model, Missing):
        why = model.reason if "num_layers" in settings else say("layouts.expected-sizes")
        return Missing(_PATH, why, model.cure)
    if gpu is None:
        return Missing(_PATH, say("layouts.expected-gpu"), say("layouts.expected-gpu-cure"))
    rows = nearest_references(settings, gpu, run.precision)
    if not rows:
        models = ", ".join(dict.fromkeys(row.model for row in references()))
        why = say("layouts.expected-model")
        return Missing(_PATH, why, say("layouts.expected-model-cure", models=models))
    gpu_rows = _chosen(rows, gpu, run)
    if not gpu_rows:
        gpus = ", ".join(dict.fromkeys(row.gpu for row in rows))
        row, *_ = rows
        why = say("layouts.expected-none", model=row.model, gpu=gpu)
        return Missing(_PATH, why, say("layouts.expected-none-cure", gpus=gpus))
    return _range(run, model, [_brought(row, run) for row in gpu_rows])


def held_against(
    normal: OrMissing[NormalThroughput], tokens: float | None, removable_frac: float | None
) -> OrMissing[NormalThroughput]:
    """The range with where a measured throughput lies, and where its replay without the largest
    wall does.
    """
    if normal is None or isinstance(normal, Missing) or tokens is None:
        return normal
    # no step stands beside a measured one, of whatever batch it had
    held = with_fields(
        normal, step_low_ns=None, step_high_ns=None, standing=_standing(normal, tokens)
    )
    if removable_frac is None or removable_frac >= 1:
        return held
    replayed = tokens / (1 - removable_frac)
    return with_fields(
        held, replayed_tokens_high=replayed, replayed_standing=_standing(normal, replayed)
    )


def _standing(normal: NormalThroughput, tokens: float) -> Standing:
    if tokens < normal.tokens_low:
        return "below"
    if tokens > normal.tokens_high:
        return "above"
    return "inside"


def _chosen(rows: Sequence[Reference], gpu: str, run: Run) -> list[Reference]:
    """Rows of the GPU, the nearest first; of the same precision, routing and dispatcher where there
    are such.
    """
    near, routing = _of_kind(rows, gpu, run), "balanced" if run.config.on(FORCE) else "natural"
    near = [row for row in near if row.routing in (routing, "unknown")] or near
    near = [row for row in near if row.dispatcher == run.config.dispatcher] or near
    return near[: NEAREST.whole]


def _of_kind(rows: Iterable[Reference], gpu: str, run: Run) -> list[Reference]:
    """Of a GPU, and of the run's precision where there are such."""
    near, bits = [row for row in rows if row.gpu == gpu], (run.precision or "").lower()
    return [row for row in near if row.precision and _alike(row.precision.lower(), bits)] or near


def _alike(published: str, here: str) -> bool:
    return here == published or (published == "fp8" and here.startswith("fp8"))


def _brought(row: Reference, run: Run) -> _Brought:
    there = FileSide(name="published", settings=_settings_of(row, run), given=Given(gpu=row.gpu))
    here = FileSide(
        name="here", settings=run.config.settings, given=replace(run.given, gpu=run.gpu)
    )
    brought = _Brought(row)
    for made in made_changes(there.against(here), here.against(there), differences(there, here)):
        if made.here == "other":
            brought.left.append(made)
            continue
        brought.made.append(made)
        low, high = made.wide  # what may do nothing here shortens or lengthens nothing for sure
        brought.low += min(0.0, low)
        brought.high += max(0.0, high)
    return brought


def _settings_of(row: Reference, run: Run) -> Settings:
    """What the published run sets: its preset; else this run's settings in its layout and
    precision.
    """
    settings = _preset(row.model, row.gpu, row.precision, row.gpus) or run.config.settings
    said = dict[str, Value]()
    if row.routing != "unknown":
        said[FORCE] = row.routing == "balanced"
    if row.dispatcher:
        said |= set_to(run, row.dispatcher).of("megatron_bridge", settings)
    return settings.changed(said, "published")


@cache
def _preset(model: str, gpu: str, precision: str | None, gpus: int | None) -> Settings | None:
    ids = {name: id for id, name in model_names_by_id().items()}
    id, code = ids.get(model), _table()["codes"].get((precision or "").upper())
    if id is None or code is None or gpus is None:
        return None
    family = _table()["families"].get(id, "qwen")
    line = f"python run_script.py -m {family} -mr {id} -g {gpu.lower()} -c {code} -ng {gpus}"
    read = configuration_of(line, "preset.sh").settings
    if KnobView(read).on("launcher.recipe_values_known"):
        return read
    return None


def _range(run: Run, model: ModelSize, brought: Sequence[_Brought]) -> NormalThroughput:
    tera_flops = sum(flops_per_token(model).values()) / 1e12
    reached = [row.row.tokens_per_s_per_gpu for row in brought]
    for row in _of_kind(references(), brought[0].row.gpu, run):
        reached.append(row.tflops_per_gpu / tera_flops)
    low = min(max(reached), *(row.tokens_low for row in brought))
    high = min(max(reached), max(row.tokens_high for row in brought))
    changes = list[Made]()
    for brought_row in brought:
        changes += brought_row.made
    mfus: tuple[float | None, float | None] = (None, None)
    if ceiling := peak(run.gpu, peak_precision(run.precision)):
        mfus = low * tera_flops / ceiling.tflops, high * tera_flops / ceiling.tflops
    steps_ns: tuple[int | None, int | None] = (None, None)
    batch, world = run.config.positive(GLOBAL_BATCH), run.config.world
    if batch and world:
        tokens = batch * model.seq_length / world
        steps_ns = round(tokens / high * 1e9), round(tokens / low * 1e9)
    return NormalThroughput(
        tokens_low=low,
        tokens_high=high,
        tflops_low=low * tera_flops,
        tflops_high=high * tera_flops,
        mfu_low_frac=mfus[0],
        mfu_high_frac=mfus[1],
        step_low_ns=steps_ns[0],
        step_high_ns=steps_ns[1],
        published=tuple(map(_published, brought)),
        counted=each_once(map(_change, changes)),
        not_counted=tuple(_not_counted(brought[0], run)),
        sources=each_once(_sources(brought)),
    )


def _published(brought: _Brought) -> str:
    row = brought.row
    gpus = f"{row.gpus} {row.gpu}" if row.gpus else row.gpu
    forced = ", routing forced to balance" if row.routing == "balanced" else ""
    rate = f"{rounded(row.tokens_per_s_per_gpu)} tokens/s"
    return f"{row.model} on {gpus}, {row.precision or 'precision unknown'}{forced}: {rate}"


def _change(change: Made) -> str:
    least, most = map(part_of_step, change.wide)
    return f"{change.title}: a step of {between(least, most)}"


def _not_counted(brought: _Brought, run: Run) -> Iterator[str]:
    """What differs from the nearest row and has no measured change."""
    closest = nearest(
        brought.row, brought.row.tokens_per_s_per_gpu, run.config.settings, run.gpu, run.precision
    )
    counted = list[str]()
    for made in brought.made:
        counted += made.knobs
    for side in closest.differs:
        if not any(side.what in knob for knob in counted):
            what = _table()["aspects"].get(side.what, side.what)
            yield f"{what} {side.here} (published: {side.published})"
    yield from map(_change, brought.left)


def _sources(brought: Sequence[_Brought]) -> Iterator[str]:
    for row in brought:
        yield row.row.source
    for row in brought:
        for made in row.made:
            for here, measured in made.nearest:
                if here == made.here:
                    yield measured.source
