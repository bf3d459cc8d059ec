"""Facts of a configuration that tables of every subject ask: versions, sizes, features, graphs."""

from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter, contains, methodcaller
from typing import Final

from packaging.version import Version

from heuristics.config.about import GRAPH_KNOBS
from heuristics.config.versions import PACKAGES
from heuristics.config.view import Config
from heuristics.facts.dictionary import enter, read, told_by
from traces.missing import of_known
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

ALLOCATOR: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Variables that PyTorch reads for its caching allocator: by release and by GPU."""
OF_ALLOCATOR: Final = tuple(f"env.{name}" for name in ALLOCATOR)
RECIPES: Final = {
    "hopper": ("fp8_blockwise", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "blackwell_nvl8": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "nvl72": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
}
"""Recipes that a platform's guides name: the first is where the older edition starts, one scale per
tensor is a candidate of the newer one on all."""
_GATHER_RECIPE: Final = "mixed_precision.fp8_recipe"
_FRACTION: Final = "optimizer.optimizer_offload_fraction"
_OPTIMIZER: Final = "optimizer.optimizer"


class _Read(TableRow):
    """A row of `configuration.toml`, which says what its fields are."""

    at: str = ""
    on: Texts = ()
    any_on: Texts = ()
    knobs: Texts = ()
    option: str = ""

    def asked(self, name: str) -> Callable[[Config], object]:
        """The question to a configuration."""
        if self.on:
            return methodcaller("on", *self.on)
        if self.any_on:
            return methodcaller("any_on", *self.any_on)
        question = self.at or name
        if question.endswith("()"):
            return methodcaller(question[:-2])
        return attrgetter(question)


for _name, _row in read_table("heuristics.facts", "configuration.toml", dict[str, _Read]).items():
    _knobs = _row.knobs or _row.on or _row.any_on
    enter(_name, _row.asked(_name), Config, *_knobs, option=_row.option)
read(Config, "nvlink_domain", option="--nvlink-domain or --gpu-model")


# ---- versions, hardware ----


@cache
def version(numbers: tuple[int, ...] | None) -> Version | None:
    """A version that compares with a text such as '2.8.0'."""
    if numbers is None:
        return None
    return Version(".".join(map(str, numbers)))


def _release(package: str, config: Config) -> Version | None:
    return version(getattr(config, package))


for _package in PACKAGES:
    enter(_package, partial(_release, _package), Config, option=f"--{_package}-version")


enter("nccl", methodcaller("version_text", "nccl"), Config, option="--log")


@told_by(option="--gpu-model")
def capability(config: Config) -> Version | None:
    return version(config.capability)


@told_by(option="--gpu-model")
def capability_major(config: Config) -> int | None:
    """The first number of the compute capability."""
    return config.capability and config.capability[0]


@told_by(option="--gpu-model")
def gpu(config: Config) -> str | None:
    if config.gpu_family:
        return config.gpu_family.name
    return None


@told_by(*OF_ALLOCATOR)
def expandable_segments(config: Config) -> bool | None:
    """As any of the allocator's variables has it; None where none of them is known."""
    is_on = None
    for text in map(config.env, ALLOCATOR):
        if text is not None:
            is_on = is_on or "expandable_segments:true" in text.lower().replace(" ", "")
    return is_on


# ---- features ----


@told_by(_GATHER_RECIPE, "fp8_recipe")
def gather_recipe(config: Config) -> object:
    return config.value(_GATHER_RECIPE if config.known(_GATHER_RECIPE) else "fp8_recipe")


@told_by(_FRACTION)
def optimizer_offload_fraction(config: Config) -> float | None:
    """Megatron-Bridge leaves it at OptimizerConfig's own default, 0."""
    if config.known(_FRACTION) or config.framework != "megatron_bridge":
        return config.number(_FRACTION)
    return 0.0


@told_by(_OPTIMIZER)
def muon(config: Config) -> bool | None:
    return of_known(contains, config.word(_OPTIMIZER), "muon")


@told_by("fp8", "fp8_recipe", "fp4", option="--gpu-model")
def platform_recipe(config: Config) -> bool | str | None:
    """Whether the precision is one that guides name for the GPU."""
    hardware, precision = config.hardware_class, config.precision
    return hardware and precision and precision in RECIPES.get(hardware, ())


# ---- CUDA graphs ----

read(Config, "graph_impl", *GRAPH_KNOBS)
for _name in ("full_iteration", "graph_parts", "captured"):
    read(Config, _name, *GRAPH_KNOBS, "cuda_graph_modules")


# ---- lists, as the framework understands them ----


@told_by(*("recompute_granularity", "recompute_modules", "moe_layer_recompute"))
def recompute_list(config: Config) -> Texts | None:
    """The list as it stands, whatever the granularity; else what the granularity means.

    The older `moe_layer_recompute` adds `moe` to it.
    """
    knob = "recompute_modules"
    listed = config.names(knob) if config.known(knob) else config.recompute_modules()
    if listed is not None and "moe" not in listed and config.on("moe_layer_recompute"):
        return (*listed, "moe")
    return listed


@told_by("recompute_modules")
def modules_unset(config: Config) -> bool:
    """No file names what is recomputed, or it names nothing in a form that the framework fills
    in.
    """
    return config.written.value("recompute_modules") is None
