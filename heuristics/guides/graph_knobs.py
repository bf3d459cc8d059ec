"""A choice of CUDA graphs in the spelling of a release."""

from __future__ import annotations

from heuristics.config.versions import numbers
from heuristics.guides.graph_choice import GraphChoice


def graph_knobs(choice: GraphChoice, core_version: str | None, bridge: bool) -> tuple[str, ...]:
    """Flags of Megatron-LM, or overrides of Megatron-Bridge; of the newest release where it is unknown.

    Empty where the release has no way to say it. Spellings read at the tags core_v0.12.0 to core_v0.19.0:
    graphs had flags of their own up to 0.14, `cuda_graph_impl` since 0.15, modules since 0.16 under the name
    `cuda_graph_scope`, since 0.18 `cuda_graph_modules` with `full_iteration` as an implementation.
    """
    version = numbers(core_version) if core_version else None
    settings = _settings(choice, version)
    if bridge:
        return tuple(f"model.{name}={_override(value)}" for name, value in settings)
    return tuple(_flag(name, value) for name, value in settings)


_Value = str | bool | tuple[str, ...]
_Settings = tuple[tuple[str, _Value], ...]


def _settings(choice: GraphChoice, version: tuple[int, int, int] | None) -> _Settings:
    if version is not None and version < (0, 16, 0):
        return _early(choice, version)
    older = version is not None and version < (0, 18, 0)
    if choice.impl == "none":
        return (("cuda_graph_impl", "none"),)
    if choice.impl == "full_iteration" and older:
        return (("cuda_graph_impl", "local"), ("cuda_graph_scope", ("full_iteration",)))
    if not choice.modules:
        return (("cuda_graph_impl", choice.impl),)
    return (
        ("cuda_graph_impl", choice.impl),
        ("cuda_graph_scope" if older else "cuda_graph_modules", choice.modules),
    )


def _early(choice: GraphChoice, version: tuple[int, int, int]) -> _Settings:
    """Before 0.16 one scope: the whole layer, attn, and from 0.14 the full iteration."""
    if choice.impl == "none":
        return (("cuda_graph_impl", "none"),) if version >= (0, 15, 0) else ()
    full = choice.impl == "full_iteration"
    if (full and version < (0, 14, 0)) or choice.modules not in ((), ("attn",)):
        return ()
    scope = "full_iteration" if full else choice.modules[0] if choice.modules else "full"
    impl = "local" if full else choice.impl
    if version >= (0, 15, 0):
        return (("cuda_graph_impl", impl), ("cuda_graph_scope", scope))
    switch = "external_cuda_graph" if impl == "transformer_engine" else "enable_cuda_graph"
    return ((switch, True), ("cuda_graph_scope", scope))


def _flag(name: str, value: _Value) -> str:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return flag
    return f"{flag} {value}" if isinstance(value, str) else f"{flag} {' '.join(value)}"


def _override(value: _Value) -> str:
    if isinstance(value, bool):
        return "true"
    return value if isinstance(value, str) else f"[{','.join(value)}]"
