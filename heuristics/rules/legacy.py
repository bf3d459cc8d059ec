"""One thing a configuration must not have: the form of a row, and the verdict of a row by version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.config.versions import Version, numbers
from heuristics.config.view import Config

Level = Literal["error", "warning", "ignored"]
"""`ignored`: the framework changes the setting, or drops it, without an error."""

Says = Literal["core", "megatron_lm", "megatron_bridge", "dispatcher", "ours"]
"""Who refuses: Megatron-Core's configuration, the arguments of Megatron-LM, Megatron-Bridge, Megatron-Core
while it builds or runs a layer (`dispatcher`), or nobody but us before the run fails."""

Condition = Callable[[Config], bool | None]

CORE: Final = "Megatron-Core, transformer/transformer_config.py"
CORE_PARALLEL: Final = "Megatron-Core, model_parallel_config.py"
CORE_DISPATCHER: Final = "Megatron-Core, transformer/moe/token_dispatcher.py"
CORE_MOE: Final = "Megatron-Core, transformer/moe/moe_layer.py"
LM: Final = "Megatron-LM, training/arguments.py"
BRIDGE: Final = "Megatron-Bridge, training/config.py"
BRIDGE_OVERLAP: Final = "Megatron-Bridge, training/comm_overlap.py"
BRIDGE_FLEX: Final = "Megatron-Bridge, training/flex_dispatcher_backend.py"

CORE_MAIN: Final = "0.20.0"
"""What Megatron-LM's main calls itself (core/package_info.py at d98e8a64): later than every release."""
BRIDGE_MAIN: Final = "0.7.0"
"""What Megatron-Bridge's main calls itself (package_info.py at 067f987d)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row.

    `knobs`: ids it speaks of. `broken`: whether a configuration breaks it, None where unknown. `since` and
    `until`: the first release that has it and the first that has it no more, empty without; of Megatron-Core
    (and so Megatron-LM), of Megatron-Bridge where that refuses. `core_message`: a part of Megatron-Core's own
    error. `cure`: what would meet it; `fix`: the fix that does, if one.
    """

    id: str
    knobs: tuple[str, ...]
    text: str
    broken: Condition
    says: Says
    source: str
    cure: str
    level: Level = "error"
    since: str = ""
    until: str = ""
    core_message: str = ""
    fix: str = ""


def verdict(rule: Rule, config: Config) -> bool | None:
    """Whether a configuration breaks a rule in its version and framework; None where unknown.

    An unknown version counts as the newest; a rule that the newest no longer has is then unknown.
    """
    applies = has_rule(rule, config.core, config.bridge, config.framework)
    if applies is False:
        return False
    broken = rule.broken(config)
    return broken if applies or broken is False else None


def in_force(rule: Rule, version: Version | None) -> bool | None:
    """Whether a release has a rule; None where the release is unknown and the newest has it no more."""
    if version is None:
        return None if rule.until else True
    early = bool(rule.since) and version < numbers(rule.since)
    late = bool(rule.until) and version >= numbers(rule.until)
    return not early and not late


def has_rule(rule: Rule, core: Version | None, bridge: Version | None, framework: str | None) -> bool | None:
    """Whether these releases and this framework have a rule; None where that is unknown."""
    if rule.says not in ("megatron_lm", "megatron_bridge"):
        return in_force(rule, core)
    if framework not in (None, rule.says):
        return False
    forced = in_force(rule, bridge if rule.says == "megatron_bridge" else core)
    return None if forced and framework is None else forced
