"""Layouts of a named model on some GPUs, as several tests ask for them."""

from __future__ import annotations

from heuristics.config.about import Given
from heuristics.layouts.choose import Found, Wanted, find_layouts
from heuristics.layouts.published import Published, published
from heuristics.run.run import Run
from traces.names.gpus import product_named
from traces.settings.model_names import model_named
from traces.settings.printed import change_of
from traces.settings.settings import settings


def found(name: str, gpu: str, gpus: int, batch: int, among: tuple[Published, ...] | None = None) -> Found:
    """The layouts of a model, and the published ones that they are held against."""
    base = model_named(name).settings.under(settings({"train.global_batch_size": batch}, "test"))
    product = product_named(gpu)
    assert product is not None
    assert product.memory_bytes is not None
    wanted = Wanted(base, Given(gpu=gpu), gpu, gpus, product.memory_bytes, False, among)
    layouts = find_layouts(wanted)
    assert isinstance(layouts, Found)
    return layouts


def without(name: str, gpu: str) -> tuple[Published, ...]:
    """What is published but for a model on a GPU."""
    id = model_named(name).id
    return tuple(one for one in published() if not (one.model == id and one.gpu == gpu))


def run_as_typed(layouts: Found, place: int) -> Run:
    """The run that somebody has who types the lines of a layout; Megatron-LM's."""
    lines = layouts.layouts[place].knobs
    changes = change_of((*lines.megatron_lm, *lines.environment), "megatron_lm")
    return Run(given=Given(), settings=layouts.settings.changed(changes, "typed"))
