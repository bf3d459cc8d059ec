"""A choice of CUDA graphs in the spelling of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.config.versions import numbers
from heuristics.guides.graph_choice import GraphChoice
from traces.settings.settings import Framework, Value
from traces.settings.spelling import spell

_IMPL: Final = "cuda_graph_impl"
_MODULES: Final = "cuda_graph_modules"
RNG_TRACKER: Final[Mapping[str, Value]] = {"use_te_rng_tracker": True, "rng.te_rng_tracker": True}
"""What every CUDA graph needs of the random numbers."""


def graph_knobs(choice: GraphChoice, core_version: str | None, bridge: bool) -> tuple[str, ...]:
    """Flags of Megatron-LM, or overrides of Megatron-Bridge; of the newest release where it is unknown.

    Empty where the release has no way to say it. Spellings read at the tags core_v0.12.0 to core_v0.19.0:
    graphs had flags of their own up to 0.14, `cuda_graph_impl` since 0.15, modules since 0.16 under the name
    `cuda_graph_scope`, since 0.18 `cuda_graph_modules` with `full_iteration` as an implementation.
    """
    framework: Framework = "megatron_bridge" if bridge else "megatron_lm"
    return spell(graph_settings(choice, core_version), framework, core_version)


def graph_settings(choice: GraphChoice, core_version: str | None) -> dict[str, Value]:
    """A choice as the knobs of a release."""
    version = numbers(core_version) if core_version else None
    if version is not None and version < (0, 16, 0):
        return _early(choice, version)
    older = version is not None and version < (0, 18, 0)
    if choice.impl == "full_iteration" and older:
        return {_IMPL: "local", _MODULES: ("full_iteration",)}
    modules: dict[str, Value] = {_MODULES: choice.modules} if choice.modules else {}
    return {_IMPL: choice.impl, **({} if choice.impl == "none" else modules)}


def _early(choice: GraphChoice, version: tuple[int, int, int]) -> dict[str, Value]:
    """Before 0.16 one scope: the whole layer, attn, and from 0.14 the full iteration."""
    if choice.impl == "none":
        return {_IMPL: "none"} if version >= (0, 15, 0) else {}
    full = choice.impl == "full_iteration"
    if (full and version < (0, 14, 0)) or choice.modules not in ((), ("attn",)):
        return {}
    scope = "full_iteration" if full else choice.modules[0] if choice.modules else "full"
    impl = "local" if full else choice.impl
    if version >= (0, 15, 0):
        return {_IMPL: impl, _MODULES: (scope,)}
    switch = "external_cuda_graph" if impl == "transformer_engine" else "enable_cuda_graph"
    return {switch: True, _MODULES: (scope,)}
