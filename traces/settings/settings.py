"""Settings of a run: one name for each knob, whoever said it, and where it was said.

A knob's name (its id) is Megatron-Core's newest field name: `moe_token_dispatcher_type`. What is not a field
of the model's or the parallel layout's configuration carries its group: `ddp.overlap_grad_reduce`,
`optimizer.optimizer_cpu_offload`, `train.micro_batch_size`, `comm_overlap.tp_comm_overlap` (of Bridge),
`mixed_precision.fp8_recipe`, `rng.te_rng_tracker`, `env.CUDA_DEVICE_MAX_CONNECTIONS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...] | None
"""None is a setting too: said to be null."""

Framework = Literal["megatron_lm", "megatron_bridge"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob's value. `said`: where, such as `config.yaml:12`, `--ep`, `trace`, `default`."""

    value: Value
    said: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What is known of a run's configuration; a knob that is not in it is unknown, never off.

    `framework`: whose spelling the file was in, None where no file was given.
    """

    by_knob: Mapping[str, Setting] = field(default_factory=dict)
    framework: Framework | None = None

    def __contains__(self, knob: str) -> bool:
        return knob in self.by_knob

    def value(self, knob: str) -> Value:
        """The knob's value; None where it is unknown or null: `in` tells them apart."""
        found = self.by_knob.get(knob)
        return None if found is None else found.value

    def said(self, knob: str) -> str:
        """Where it was said; empty where unknown."""
        found = self.by_knob.get(knob)
        return "" if found is None else found.said

    def under(self, other: Settings) -> Settings:
        """These, overlaid with others, which win."""
        return Settings({**self.by_knob, **other.by_knob}, other.framework or self.framework)

    def changed(self, values: Mapping[str, Value], said: str) -> Settings:
        """These with some knobs set to other values."""
        return self.under(settings(values, said))


def settings(
    values: Mapping[str, Value] | Iterable[tuple[str, Value]], said: str, framework: Framework | None = None
) -> Settings:
    """Settings all said in one place."""
    return Settings({knob: Setting(value, said) for knob, value in dict(values).items()}, framework)
