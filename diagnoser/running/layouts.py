"""Layouts of a model by its name, or of a configuration, on some GPUs: read, found, written
down.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from diagnoser.diagnosis import LayoutsResult
from diagnoser.options.given import given_from, size_of
from diagnoser.options.requests import LayoutPlan, made_again
from diagnoser.running.inputs.whole_names import with_whole_names
from diagnoser.version import VERSION
from heuristics.config.about import option_of
from traces.errors import UsageError
from traces.limits import MOST_RANKS, Limit
from traces.missing import Missing
from traces.names.file_names import told_path
from traces.sections.section import copied
from traces.settings.knobs import GLOBAL_BATCH
from traces.spelling import counted
from traces.texts import Texts

if TYPE_CHECKING:
    from heuristics.config.about import Given
    from heuristics.layouts.choose import Found, Wanted
    from traces.settings.settings import Settings

_TOKENS: Final = Limit(
    1 << 40, "tokens or sequences", "ours: a thousand times the longest there is"
)
_AROUND: Final = 64
"""Numbers of GPUs below and above that are tried where none divides."""


def plan_layouts(request: LayoutPlan) -> LayoutsResult:
    """See `diagnoser.plan` for what it raises."""
    from heuristics.layouts.choose import find_layouts

    given = given_from(request.about or {})
    settings, name, is_file, problems = _model(request, given)
    for flag, size, most in (
        ("--gpus", request.gpus, MOST_RANKS),
        ("--seq-length", request.seq_length, _TOKENS),
        ("--global-batch", request.global_batch, _TOKENS),
    ):
        if size is not None:
            size_of(flag, size, most)
    sizes = {"seq_length": request.seq_length, GLOBAL_BATCH: request.global_batch}
    given_sizes = {knob: count for knob, count in sizes.items() if count is not None}
    settings = settings.changed(given_sizes, "option")
    wanted = _wanted(request, given, settings, is_file)
    request.progress("holding layouts against memory", None)
    layouts = find_layouts(wanted)
    if isinstance(layouts, Missing):
        raise UsageError(f"{name}: {layouts.reason}. {layouts.cure[:1].upper()}{layouts.cure[1:]}.")
    if not layouts.counted.divide:
        raise UsageError(_nothing_divides(layouts, wanted))
    from heuristics.layouts.published import model_of, weight_of
    from heuristics.result.layouts import Layouts
    from heuristics.result.tool import SCHEMA_VERSION, Tool

    weight, known, files = weight_of(layouts.model), model_of(layouts.model), [Path(request.model)]
    result = copied(
        Layouts,
        layouts,
        wanted,
        schema_version=SCHEMA_VERSION,
        tool=Tool("moe-diag", VERSION, wanted.given.guidance),
        kind="layouts",
        warnings=(*problems, *layouts.warnings),
        missing=(),
        redacted=request.redact,
        command=made_again("plan", files, request),
        about=name,
        model=known.name if known else "",
        global_batch=int(str(layouts.settings.value(GLOBAL_BATCH))),
        seq_length=layouts.model.seq_length,
        parameters_count=weight.total,
        active_count=weight.active,
    )
    return LayoutsResult(with_whole_names(result, files))


def _model(request: LayoutPlan, given: Given) -> tuple[Settings, str, bool, Texts]:
    """Settings, the name that is shown, and what of a file was not read."""
    from traces.settings.model_names import model_named

    path = Path(request.model)
    if path.exists():
        from diagnoser.running.configuration import read_configured

        configured = read_configured(path, None, given, request.progress)
        count = len(configured.problems)
        unread = (
            (f"{counted(count, 'line')} of {told_path(path)} not read as they stand",)
            if count
            else ()
        )
        return configured.files, told_path(path), True, unread
    model = model_named(request.model)
    return model.settings, model.name, False, ()


def _wanted(request: LayoutPlan, given: Given, settings: Settings, is_file: bool) -> Wanted:
    from heuristics.layouts.choose import Wanted
    from heuristics.run.run import Run
    from traces.names.gpus import product_named, products

    config = Run(given=given, settings=settings).config
    gpu, gpus = config.gpu, request.gpus or config.world
    product = product_named(gpu) if gpu else None
    if not product:
        raise UsageError(
            f"which GPU is unknown. Add {option_of('gpu')} H100, or another: "
            f"{', '.join(products())}."
        )
    if product.memory_bytes is None:
        raise UsageError(
            f"the memory of a {product.name} is unknown, so nothing can be held against it."
        )
    if not gpus:
        raise UsageError("how many GPUs is unknown. Add --gpus 64, or as many as there are.")
    return Wanted(
        settings,
        replace(given, gpu=product.name),
        product.name,
        gpus,
        product.memory_bytes,
        is_file,
    )


def _nothing_divides(layouts: Found, wanted: Wanted) -> str:
    """That no layout divides, and the numbers of GPUs next to it that do."""
    from heuristics.layouts.candidates import LayoutRequest, candidates

    batch = int(str(layouts.settings.value(GLOBAL_BATCH)))

    def divides(gpus: int) -> bool:
        return gpus > 0 and any(True for _ in candidates(LayoutRequest(layouts.model, gpus, batch)))

    lower = next(filter(divides, range(wanted.gpus - 1, wanted.gpus - _AROUND - 1, -1)), 0)
    upper = next(filter(divides, range(wanted.gpus + 1, wanted.gpus + _AROUND + 1)), 0)
    numbers = " or ".join(map(str, filter(None, (lower, upper))))
    cure = (
        f"Give --gpus {numbers}, or another --global-batch."
        if numbers
        else "Give another --global-batch."
    )
    return (
        f"no layout divides {wanted.gpus} GPUs and a global batch of {batch:,}: data-parallel "
        f"ranks times the micro-batch must divide it. {cure}"
    )
