"""A run's configuration as rules ask for it. None is unknown; an unknown knob never breaks a rule."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

from heuristics.config.hardware import gpu_capability
from heuristics.fixes.preconditions import core_version, numbers
from heuristics.guides.precision import element_bits
from heuristics.run.run import Run
from traces.settings.effective import effective
from traces.settings.effective_bridge import of_precision
from traces.settings.settings import Setting, Settings, Value

Version = tuple[int, int, int]
Package = Literal["core", "bridge", "te", "torch"]

_ONE_BYTE_BITS: Final = 8


class Config:
    """Questions to a run's settings, versions and hardware."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.settings = _with_recipe(as_validated(run))
        self._values = {knob: said.value for knob, said in self.settings.by_knob.items()}

    def known(self, knob: str) -> bool:
        """Whether anybody said it, null included."""
        return knob in self._values

    def value(self, knob: str) -> Value:
        """Its value; None where unknown or null."""
        return self._values.get(knob)

    def on(self, knob: str) -> bool | None:
        """Whether it is switched on or set; null and zero are off."""
        return bool(self._values[knob]) if knob in self._values else None

    def null(self, knob: str) -> bool | None:
        """Whether it is said to be null."""
        return self._values[knob] is None if knob in self._values else None

    def one_of(self, knob: str, *values: Value) -> bool | None:
        """Whether it is one of these."""
        return self.value(knob) in values if self.known(knob) else None

    def number(self, knob: str) -> float | None:
        """Its number; None where unknown, null or no number."""
        value = self.value(knob)
        return None if isinstance(value, bool) or not isinstance(value, int | float) else value

    def count(self, knob: str) -> int | None:
        """Its whole number; None where unknown, null or no whole number."""
        value = self.value(knob)
        return None if isinstance(value, bool) or not isinstance(value, int) else value

    def above(self, knob: str, limit: float) -> bool | None:
        """Whether its number is above a limit; null is not."""
        number = self.number(knob)
        return number > limit if number is not None else False if self.null(knob) else None

    def names(self, knob: str) -> tuple[str, ...] | None:
        """Its list of names, one name as well; null is the empty list, None is unknown."""
        value = self.value(knob)
        if not self.known(knob):
            return None
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return tuple(str(name) for name in value) if isinstance(value, tuple) else ()

    def holds(self, knob: str, name: str) -> bool | None:
        """Whether its list has a name."""
        names = self.names(knob)
        return None if names is None else name in names

    def env(self, name: str) -> str | None:
        """An environment variable's text; None where unknown. Null is the empty text: unset."""
        knob = f"env.{name}"
        return None if not self.known(knob) else "" if self.null(knob) else str(self.value(knob))

    def env_is(self, name: str, text: str) -> bool | None:
        """Whether an environment variable has this text; one that is unset has not."""
        value = self.env(name)
        return None if value is None else value == text

    @cached_property
    def core_text(self) -> str | None:
        """Megatron-Core's version as text: as given, else that of the Megatron-Bridge release."""
        return core_version(self.run)

    @cached_property
    def core(self) -> Version | None:
        """Megatron-Core's version, and so Megatron-LM's."""
        return _version(self.core_text)

    @cached_property
    def bridge(self) -> Version | None:
        """Megatron-Bridge's version."""
        return _version(self.run.given.bridge_version)

    @cached_property
    def te(self) -> Version | None:
        """Transformer Engine's version."""
        return _version(self.run.given.te_version)

    @cached_property
    def torch(self) -> Version | None:
        """PyTorch's version."""
        return _version(self.run.given.torch_version)

    def before(self, package: Package, version: str) -> bool | None:
        """Whether a package is older than a version."""
        found = {"core": self.core, "bridge": self.bridge, "te": self.te, "torch": self.torch}[package]
        return None if found is None else found < numbers(version)

    @cached_property
    def framework(self) -> str | None:
        """Whose spelling the configuration is in, else Bridge where its version was given."""
        if self.settings.framework:
            return self.settings.framework
        return "megatron_bridge" if self.run.given.bridge_version else None

    @cached_property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability of the GPU (major, minor)."""
        return gpu_capability(self.run)

    def before_blackwell(self) -> bool | None:
        """Whether the GPU is older than compute capability 10."""
        return None if self.capability is None else self.capability < (10, 0)

    def size(self, knob: str) -> int | None:
        """Ranks of a parallel dimension, null is 1; of `expert_tensor_parallel_size`, null is TP's."""
        if self.null(knob):
            tensor = "tensor_model_parallel_size"
            return self.size(tensor) if knob == "expert_tensor_parallel_size" else 1
        return self.count(knob)

    @property
    def tp(self) -> int | None:
        """Tensor-parallel ranks."""
        return self.size("tensor_model_parallel_size")

    @property
    def cp(self) -> int | None:
        """Context-parallel ranks."""
        return self.size("context_parallel_size")

    @property
    def pp(self) -> int | None:
        """Pipeline stages."""
        return self.size("pipeline_model_parallel_size")

    @property
    def ep(self) -> int | None:
        """Expert-parallel ranks."""
        return self.size("expert_model_parallel_size")

    @property
    def etp(self) -> int | None:
        """Ranks that share one expert."""
        return self.size("expert_tensor_parallel_size")

    @property
    def world(self) -> int | None:
        """All ranks."""
        return self.count("world_size")

    @property
    def dp(self) -> int | None:
        """Data-parallel ranks, where the world divides."""
        return _share(self.world, self.tp, self.cp, self.pp)

    @property
    def edp(self) -> int | None:
        """Data-parallel ranks of the experts, where the world divides."""
        return _share(self.world, self.etp, self.ep, self.pp)

    def more_than_one(self, size: int | None) -> bool | None:
        """Whether a size spreads over ranks."""
        return None if size is None else size > 1

    def moe(self) -> bool | None:
        """Whether the model has experts to choose from."""
        return self.above("num_moe_experts", 1)

    def low_precision(self) -> bool | None:
        """Whether matrix work is in FP8 or FP4: by its formats, else by the precision that was given."""
        formats = (self.on("fp8"), self.on("fp4"))
        if True in formats:
            return True
        if None not in formats:
            return False
        bits = element_bits(self.run.given.precision)
        return None if bits is None else bits <= _ONE_BYTE_BITS

    def expert_overlap(self, name: str) -> bool | None:
        """A switch of EP overlap; Bridge's comm_overlap, where there is one, wins, and is off unless it says.

        Source: Megatron-Bridge, training/comm_overlap.py, CommOverlapConfig.setup.
        """
        section = "comm_overlap."
        if self.framework != "megatron_bridge" or not any(knob.startswith(section) for knob in self._values):
            return self.on(name)
        own = self.on(f"{section}{name}")
        return False if own is None and self.known(name) else own

    def fp8(self) -> bool | None:
        """Whether matrix work is in FP8."""
        if self.known("fp8"):
            return self.on("fp8")
        bits = element_bits(self.run.given.precision)
        return None if bits is None else bits == _ONE_BYTE_BITS

    def recompute_modules(self) -> tuple[str, ...] | None:
        """What selective recompute runs again; nothing under another granularity. Null is `core_attn`.

        The older `moe_layer_recompute` adds `moe`, and makes recompute selective where it was off.
        """
        granularity = "recompute_granularity"
        older = self.on("moe_layer_recompute") is True
        if not self.known(granularity):
            return None
        if self.value(granularity) != "selective" and not (older and self.null(granularity)):
            return ()
        modules = ("core_attn",) if self.null("recompute_modules") else self.names("recompute_modules")
        return modules if modules is None or not older or "moe" in modules else (*modules, "moe")

    def recomputes(self, label: str) -> bool | None:
        """Whether selective recompute has this label."""
        modules = self.recompute_modules()
        return None if modules is None else label in modules

    def offloads(self) -> tuple[str, ...] | None:
        """What fine-grained offload moves; nothing while it is off."""
        switched = self.on("fine_grained_activation_offloading")
        return self.names("offload_modules") if switched else None if switched is None else ()


def as_validated(run: Run) -> Settings:
    """Settings as Megatron-LM hands them on: its arguments are mended, as said, before any is looked at.

    Sequence parallelism without TP goes off with a warning, for one. Megatron-Bridge's are judged as written.
    """
    is_lm = run.settings.framework == "megatron_lm"
    return effective(run.settings, core_version(run)) if is_lm else run.settings


def _with_recipe(said: Settings) -> Settings:
    """With the fields that Bridge's precision, named or spelled out, writes over those of the model."""
    name = said.value("mixed_precision")
    own = {knob: said.value(knob) for knob in said.by_knob if knob.startswith("mixed_precision.")}
    because = said.said("mixed_precision") or "mixed_precision"
    written = of_precision(name, own)
    return said.under(Settings({knob: Setting(value, because) for knob, value in written.items()}))


def _version(text: str | None) -> Version | None:
    return None if text is None else numbers(text)


def _share(world: int | None, *sizes: int | None) -> int | None:
    product = 1
    for size in sizes:
        if size is None:
            return None
        product *= size
    return world // product if world and product and world % product == 0 else None
