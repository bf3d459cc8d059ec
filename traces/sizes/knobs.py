"""Knobs read as numbers: which are missing, and which stand at Megatron's default because nobody said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from traces.missing import Missing
from traces.settings.settings import Settings, Value

_BYTES: Final = {
    "fp32": 4.0, "float32": 4.0, "float": 4.0, "bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "float16": 2.0,
    "half": 2.0, "fp8": 1.0, "uint8": 1.0, "float8_e4m3fn": 1.0,
}  # fmt: skip


@dataclass(slots=True)
class Knobs:
    """Settings being read. `missing`: knobs that nothing stands in for; `assumed`: what was taken as said."""

    settings: Settings
    missing: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    def need(self, knob: str) -> int:
        """A whole number above zero without a default; 1 and an entry in `missing` where it is not there."""
        value = self.settings.value(knob)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if knob not in self.missing:
            self.missing.append(knob)
        return 1

    def whole(self, knob: str, default: int) -> int:
        """A whole number; the default where the knob is null or was not said, which is then assumed."""
        value = self.settings.value(knob)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self._assume(knob, str(default))
        return default

    def optional(self, knob: str) -> int | None:
        """A whole number above zero, or None where it is null, zero or not said: the feature is not used."""
        value = self.settings.value(knob)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def flag(self, knob: str, default: bool) -> bool:
        """A switch; the default where it was not said, which is then assumed."""
        value = self.settings.value(knob)
        if isinstance(value, bool):
            return value
        self._assume(knob, "on" if default else "off")
        return default

    def fraction(self, knob: str, default: float) -> float:
        """A part from 0 to 1; the default where it was not said."""
        value = self.settings.value(knob)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return default
        return min(1.0, max(0.0, float(value)))

    def dtype_bytes(self, knob: str, default: float) -> float:
        """Bytes of one element of a type such as `bf16` or `torch.float32`."""
        value = self.settings.value(knob)
        known = _BYTES.get(value.removeprefix("torch.").lower()) if isinstance(value, str) else None
        return default if known is None else known

    def words(self, knob: str) -> frozenset[str]:
        """The words of a list, or of one string with spaces or commas; none where it is null or not said."""
        value = self.settings.value(knob)
        listed = value if isinstance(value, tuple) else (value,)
        return frozenset(
            w for item in listed if isinstance(item, str) for w in item.replace(",", " ").split()
        )

    def gap(self, path: str) -> Missing | None:
        """What is missing, naming the knobs; None where nothing is."""
        if not self.missing:
            return None
        names = ", ".join(self.missing)
        cure = "give the run's whole configuration with --config, or its log's `arguments` block with --log"
        if "world_size" in self.missing:
            cure = "give --world-size" if len(self.missing) == 1 else f"{cure}; --world-size for the ranks"
        return Missing(path, f"the configuration does not have {names}", cure)

    def _assume(self, knob: str, taken: str) -> None:
        said = f"{knob} {taken} (not given)"
        if knob not in self.settings and said not in self.assumed:
            self.assumed.append(said)


def low_precision_bytes(settings: Settings) -> float | None:
    """Bytes of one element of the linear layers' low-precision inputs; None where they are BF16 or unknown.

    The element alone: block scales (1/32 of MXFP8, 1/16 of NVFP4) are left out.
    """
    recipe: Value = settings.value("mixed_precision")
    named = recipe.lower() if isinstance(recipe, str) else ""
    if settings.value("fp4") or settings.value("mixed_precision.fp4") or "fp4" in named:
        return 0.5
    if settings.value("fp8") or settings.value("mixed_precision.fp8") or "fp8" in named:
        return 1.0
    return None
