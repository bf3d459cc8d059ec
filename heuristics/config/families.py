"""Families of models: the sizes that tell one, and what all of a family have."""

from typing import Final

from heuristics.config.about import OPTIONS
from traces.settings.settings import KnobView
from traces.texts import Texts

_FAMILIES: Final = {
    (61, 7168, 256, 8): "dsv3",
    (94, 4096, 128, 8): "qwen3_235b",
    (48, 2048, 128, 8): "qwen3_30b",
    (48, 2048, 512, 10): "qwen3_next",
}
"""Sizes -> family, as Megatron-Bridge's recipes of deepseek_v3, qwen3_235b_a22b, qwen3_30b_a3b and
qwen3_next_80b_a3b have them."""
MLA: Final = ("dsv2", "dsv3", "moonlight", "kimi_k2")
"""Latent attention, dense layers first, and shared experts."""
QWEN: Final = ("qwen3_235b", "qwen3_30b", "qwen3_next")
"""None of the three, but for the shared experts of the last."""
SHARED: Final = (*MLA, "qwen3_next")
NO_SHARED: Final = ("qwen3_235b", "qwen3_30b")


def family_of(config: KnobView) -> str | None:
    return _FAMILIES.get(tuple(map(config.value, OPTIONS["family"].knobs)))  # type: ignore[arg-type]


def by_family(family: str | None, having: Texts, without: Texts) -> bool | None:
    """Whether a family has what `having` lists and `without` has not; None for any other."""
    if family in having:
        return True
    if family in without:
        return False
    return None
