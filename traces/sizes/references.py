"""Published throughputs of MoE models, by `references.toml`: reference shapes, never a target for
another.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from traces.missing import Missing, of_known
from traces.patterns import whole_number
from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.model import model_size
from traces.texts import Key, Said
from traces.toml_tables import TableRow, read_table

Aspect = Literal[
    "gpu",
    "precision",
    "routing",
    "dispatcher",
    "sequence_length",
    "gpu_count",
    "global_batch_size",
    "micro_batch_size",
    "tp",
    "pp",
    "vpp",
    "ep",
]
"""What two runs of one model may differ in, what moves throughput most first."""
_GRAVE: Final[tuple[Aspect, ...]] = ("gpu", "precision", "routing", "dispatcher", "sequence_length")
_BATCH: Final[tuple[Aspect, ...]] = ("global_batch_size", "micro_batch_size", "sequence_length")
_LAYOUT: Final[Mapping[Aspect, str]] = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "vpp": "virtual_pipeline_model_parallel_size",
    "ep": "expert_model_parallel_size",
}
Routing = Literal["balanced", "natural", "unknown"]
Aspects = Mapping[Aspect, str | int | None]


class Reference(Struct, frozen=True):
    """One published row, of a run over `gpus` GPUs; what it does not say is None.

    `layout`: sizes TP/PP/VP/EP. `batch`: global batch / micro-batch / sequence. `step_s`: as
    published, else global batch times sequence over GPUs and tokens. `routing`: `balanced` is
    forced: a benchmark only.
    """

    model: Said
    gpus: int | None
    gpu: Key
    precision: Key | None
    layout: Said | None
    batch: Said | None
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    step_s: float | None
    source: Said
    routing: Routing
    dispatcher: Key | None = None


class Differs(Struct, frozen=True):
    """One thing that is not the same in a run and in a published one."""

    what: Aspect
    here: Said | int
    published: Said | int


class Nearest(Struct, frozen=True):
    """The published run that is nearest to this one. `tokens_frac`: tokens per second of this run,
    as part of its. `unknown_settings`: what one of the two does not have.
    """

    reference: Reference
    tokens_frac: float
    differs: tuple[Differs, ...]
    unknown_settings: tuple[Aspect, ...]


_Row = tuple[str, int | None, str, str | None, str | None, str | None, float, float, float | None]


class _Published(TableRow):
    source: str
    routing: Routing
    rows: tuple[_Row, ...]
    dispatcher: str | None = None


class _Table(TableRow):
    models: dict[str, list[int]]
    published: tuple[_Published, ...]


@cache
def _table() -> _Table:
    return read_table("traces.sizes", "references.toml", _Table)


@cache
def references() -> tuple[Reference, ...]:
    """Every published row, the newest source first."""
    rows = list[Reference]()
    for group in _table().published:
        for row in group.rows:
            rows.append(Reference(*row, group.source, group.routing, group.dispatcher))
    return tuple(rows)


def nearest_references(
    settings: Settings, gpu: str | None, precision: str | None = None
) -> tuple[Reference, ...]:
    """Published rows of the same model, nearest first: those that differ in what moves throughput
    most last.

    Empty where the model has no published row, or its sizes are not known. `precision`: by our
    names.
    """
    model = model_size(settings)
    if isinstance(model, Missing):
        return ()
    shape = [len(model.is_moe), model.hidden_size, model.expert_count or 0]
    of_run = _of_run(settings, gpu, precision)

    def distance(row: Reference) -> tuple[int, ...]:
        differ = {difference.what for difference in _differs(of_run, _of_row(row))}
        grave = (aspect in differ for aspect in _GRAVE)
        return (*grave, round(_gpu_ratio(of_run, row) * 1000), len(differ))

    rows = [row for row in references() if _table().models.get(row.model) == shape]
    return tuple(sorted(rows, key=distance))


def nearest(
    row: Reference,
    tokens_per_s_per_gpu: float,
    settings: Settings,
    gpu: str | None = None,
    precision: str | None = None,
) -> Nearest:
    """How far a run is from a published one."""
    of_run, published = _of_run(settings, gpu, precision), _of_row(row)
    unknown = tuple(what for what in of_run if of_run[what] is None or published[what] is None)
    return Nearest(
        row,
        tokens_per_s_per_gpu / row.tokens_per_s_per_gpu,
        _differs(of_run, published),
        unknown,
    )


def _gpu_ratio(of_run: Aspects, row: Reference) -> float:
    """How many times more GPUs one of the two has; last where unknown."""
    count = of_run["gpu_count"]
    if row.gpus is None or not isinstance(count, int) or count < 1:
        return 1e6
    return max(row.gpus, count) / min(row.gpus, count)


def _differs(of_run: Aspects, published: Aspects) -> tuple[Differs, ...]:
    differences = []
    for what, value in of_run.items():
        other_value = published[what]
        if value is not None and other_value is not None and not _same(what, value, other_value):
            differences.append(Differs(what, value, other_value))
    return tuple(differences)


def _same(what: Aspect, run_value: str | int, published: str | int) -> bool:
    """Whether two are alike; published `fp8` is any recipe of eight bits but MXFP8."""
    if what == "precision" and published == "fp8":
        return str(run_value).startswith("fp8")
    return run_value == published


def _of_run(settings: Settings, gpu: str | None, precision: str | None) -> Aspects:
    knobs = Knobs(settings)
    kind = knobs.word("moe_token_dispatcher_type")
    if kind == "flex":
        kind = knobs.word("moe_flex_dispatcher_backend")
    forced = settings.value("moe_router_force_load_balancing") is True
    return {
        "gpu": gpu,
        "precision": precision,
        "routing": "balanced" if forced else "natural",
        "dispatcher": kind,
        "sequence_length": knobs.positive("seq_length"),
        "gpu_count": knobs.positive("world_size"),
        "global_batch_size": knobs.positive("train.global_batch_size"),
        "micro_batch_size": knobs.positive("train.micro_batch_size"),
        **{what: knobs.size(knob) for what, knob in _LAYOUT.items()},
    }


def _of_row(row: Reference) -> Aspects:
    layout = map(whole_number, (row.layout or "///").replace("-", "1").split("/"))
    batch = map(whole_number, (row.batch or "//").split("/"))
    return {
        "gpu": row.gpu,
        "precision": of_known(str.lower, row.precision),
        "routing": None if row.routing == "unknown" else row.routing,
        "dispatcher": row.dispatcher,
        "gpu_count": row.gpus,
        **dict(zip(_BATCH, batch, strict=True)),
        **dict(zip(_LAYOUT, layout, strict=True)),
    }
