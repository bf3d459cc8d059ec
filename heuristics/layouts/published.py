"""Layouts that NVIDIA published, with or without a throughput, and how near each is to a layout
here.

Near by the machine and the model: what decides a layout is how much of a model falls on how much
memory, and how many GPUs a fast domain holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from math import log2
from operator import attrgetter
from typing import Final

from heuristics.config.hardware import family_named
from heuristics.layouts.candidates import Sizes
from traces.frozen import frozen
from traces.limits import Limit
from traces.names.gpus import product_named
from traces.settings.harness_recipes import presets_of_scripts
from traces.settings.model_names import NamedModel, model_names_by_id, named_models
from traces.settings.settings import settings
from traces.sizes.model import ModelSize, model_size
from traces.sizes.parameters import total_counts
from traces.sizes.references import references
from traces.toml_tables import TableRow, read_table

SCRIPTS: Final = "Megatron-Bridge v0.6.0, scripts/performance: preset"
LESSER: Final = Limit(
    0.5,
    "of a doubling",
    "ours: GPUs, NVLink domains, active parameters and EP each decide less than what must fit in a "
    "memory",
)
UNLIKE: Final = Limit(
    2.0, "doublings", "ours: two halvings or doublings of TP and PP leave nothing alike"
)


@frozen
class Weight:
    """Parameters of a model, in all and those that a token meets."""

    total: int
    active: int


@frozen
class Published:
    """One published layout; `gpus` None where the source scales with them."""

    model: str
    gpu: str
    gpus: int | None
    tp: int
    pp: int
    cp: int
    vpp: int
    ep: int
    source: str

    @property
    def layout(self) -> str:
        vpp = f" VPP {self.vpp}" if self.vpp > 1 else ""
        return f"TP {self.tp} PP {self.pp}{vpp} EP {self.ep}"


@frozen
class Machine:
    """What a layout is asked for: the model by its id where it has one, its weight, the GPU and how
    many.
    """

    model: str
    weight: Weight
    gpu: str
    gpus: int


def weight_of(model: ModelSize) -> Weight:
    """Counted from its sizes."""
    counts = total_counts(model)
    total = sum(counts.values())
    idle = 1 - model.experts.topk / model.experts.count if model.experts else 0.0
    return Weight(total, round(total - counts["experts"] * idle))


@cache
def _weights() -> dict[str, Weight]:
    weights = {}
    for model in named_models():
        size = model_size(model.settings.under(settings({"seq_length": 4096}, "plan")))
        if isinstance(size, ModelSize):
            weights[model.id] = weight_of(size)
    return weights


def model_of(model: ModelSize) -> NamedModel | None:
    """The named model of these sizes; None where it is another one."""
    weight = weight_of(model)
    return next((named for named in named_models() if _weights().get(named.id) == weight), None)


class _Group(TableRow):
    source: str
    rows: tuple[tuple[str, str, int, int, int, int, int, int], ...]


@cache
def published() -> tuple[Published, ...]:
    """Every layout of a model whose sizes are known; a layout that several sources have stands
    once.
    """
    by_layout = dict[Published, Published]()
    for layout in (*_of_references(), *_of_table(), *_of_scripts()):
        if layout.model in _weights():
            by_layout.setdefault(replace(layout, source=""), layout)
    return tuple(by_layout.values())


def _of_table() -> Iterator[Published]:
    table = read_table("heuristics.layouts", "published.toml", dict[str, tuple[_Group, ...]])
    for group in table["published"]:
        for row in group.rows:
            yield Published(*row, group.source)


def _of_references() -> Iterator[Published]:
    ids = {name: id for id, name in model_names_by_id().items()}
    for row in references():
        sizes = [1 if part == "-" else int(part) for part in (row.layout or "").split("/") if part]
        if row.model not in ids or len(sizes) != 4:
            continue
        tp, pp, vpp, ep = sizes
        yield Published(ids[row.model], row.gpu, row.gpus, tp, pp, 1, vpp, ep, row.source)


def _of_scripts() -> Iterator[Published]:
    for row in presets_of_scripts():
        size = row.sizes
        yield Published(
            row.model, row.gpu.upper(), row.gpus, size["tp"], size["pp"], size["cp"], size["vp"],
            size["ep"], f"{SCRIPTS} {row.model}, {row.gpu}, {row.precision}",
        )  # fmt: skip


@frozen
class Near:
    """A published layout with how many doublings its model and machine are away."""

    of: Published
    far: float
    same_model: bool


def near(machine: Machine, among: Sequence[Published]) -> tuple[Near, ...]:
    """Layouts of the same model, and those of other models on the same GPU, the nearest first."""
    nearby = filter(None, map(partial(_near, machine), among))
    return tuple(sorted(nearby, key=attrgetter("far")))


def _near(machine: Machine, layout: Published) -> Near | None:
    same_model, same_gpu = layout.model == machine.model, layout.gpu == machine.gpu
    if not same_model and not same_gpu:
        return None
    far = LESSER.value * (abs(log2(layout.gpus / machine.gpus)) if layout.gpus else 0)
    if not same_model:
        theirs = _weights()[layout.model]
        far += abs(log2(theirs.total / machine.weight.total))
        far += LESSER.value * abs(log2(theirs.active / machine.weight.active))
    elif not same_gpu:
        far += _gpus_apart(machine.gpu, layout.gpu)
    return Near(layout, far, same_model)


def _gpus_apart(gpu: str, other_gpu: str) -> float:
    apart, memory_gib, domains = UNLIKE.value, [], set[int]()
    for name in (gpu, other_gpu):
        product, family = product_named(name), family_named(name)
        domains.add(family.nvlink_domain if family else 8)
        if product and product.memory_gib:
            memory_gib.append(product.memory_gib)
    if len(memory_gib) == 2:
        apart = abs(log2(memory_gib[0] / memory_gib[1]))
    return apart + LESSER.value * (len(domains) > 1)


def nearness(sizes: Sizes, neighbour: Near) -> float:
    """How much a published layout speaks for this one: 1 for the same sizes on the same machine."""
    of = neighbour.of
    apart = abs(log2(sizes.tp / of.tp)) + abs(log2(sizes.pp / of.pp)) + abs(log2(sizes.cp / of.cp))
    apart += LESSER.value * abs(log2(sizes.ep / of.ep))
    return max(0.0, 1 - apart / UNLIKE.value) / (1 + neighbour.far)
