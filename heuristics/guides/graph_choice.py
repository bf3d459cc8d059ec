"""What the table of CUDA graphs answers, and the settings that make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from heuristics.config.versions import numbers
from heuristics.guides.table import Refusal
from heuristics.run.given import Guidance
from traces.settings.settings import Framework, Value
from traces.settings.spelling import can_spell, spell

Impl = Literal["none", "local", "transformer_engine", "full_iteration"]

SWITCHES: Final = {"enable_cuda_graph": "local", "external_cuda_graph": "transformer_engine"}
"""Switch before Megatron-Core 0.15 -> its implementation."""


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """What the guide says of a run.

    `impl` and `modules`: what to capture first (`none`: no graphs). `then`: what may follow, one at a time
    after an A/B; `never`: what must not. `rule` names the row that fired, `guidance` its edition. `needs`:
    knobs to set with it. `asks`: options that would settle what is unknown and matters. `refused`: modules or
    implementations ruled out on this run, why, and by whom. `other`: what the other edition says, where it
    says another thing.
    """

    impl: Impl
    modules: tuple[str, ...]
    then: tuple[str, ...]
    never: tuple[str, ...]
    rule: str
    guidance: Guidance
    needs: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    sources: tuple[str, ...] = ()
    other: GraphChoice | None = None


def graph_settings(impl: Impl, modules: tuple[str, ...], core_version: str | None) -> dict[str, Value]:
    """Graphs as settings of a release; of the newest where it is unknown.

    Read at the tags core_v0.12.0 to core_v0.19.0: a switch for each implementation up to 0.14,
    `cuda_graph_impl` since 0.15; `full_iteration` a module of local up to 0.17, an implementation since 0.18;
    whole layers are `full` up to 0.15, no module since.
    """
    version = numbers(core_version) if core_version else (1, 0, 0)
    if impl == "full_iteration" and version < (0, 18, 0):
        impl, modules = "local", ("full_iteration",)
    held = modules or (("full",) if version < (0, 16, 0) and impl != "none" else ())
    if version >= (0, 15, 0):
        return {"cuda_graph_impl": impl, "cuda_graph_modules": held}
    return {**{switch: impl == one for switch, one in SWITCHES.items()}, "cuda_graph_modules": held}


def graph_knobs(choice: GraphChoice, core_version: str | None, bridge: bool) -> tuple[str, ...]:
    """Flags of Megatron-LM, or overrides of Megatron-Bridge; empty where the release cannot say it."""
    framework: Framework = "megatron_bridge" if bridge else "megatron_lm"
    settings = graph_settings(choice.impl, choice.modules, core_version)
    version = numbers(core_version) if core_version else None
    early = version is not None and version < (0, 16, 0)
    if early and not {*choice.modules} <= {"attn"}:
        return ()
    if version is not None and version < (0, 14, 0) and choice.impl == "full_iteration":
        return ()
    made = {knob: value for knob, value in settings.items() if value not in (False, ())}
    return spell(
        {k: v for k, v in made.items() if can_spell(k, framework, core_version)}, framework, core_version
    )
