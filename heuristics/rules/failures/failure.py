"""What a failure is, and the row of the table that explains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from traces.settings.settings import Settings, Value
from traces.training_log.log import TrainingLog

Feature = Literal[
    "ep_overlap",
    "delayed_wgrad",
    "tp_overlap",
    "cuda_graphs",
    "flex_dispatcher",
    "expert_parallel",
    "router",
    "recompute",
    "offload",
    "precision",
    "memory",
    "collectives",
    "profile",
]
State = Literal["rejected", "failed", "hung", "skipped", "ineffective"]
"""Rejected: refused before the first step. Skipped: asked for, and left off with a word or without one.
Ineffective: on, or thought to be, without the effect."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something a log shows, explained.

    `text`: the likely cause. `confirm`: how to be sure. `fix`: what to do, in words; `knobs`: settings that
    do it, by the knob's id, where their values do not depend on the run. `fix_id`: the catalogue's, or
    `CFG-n` (mend the configuration), `ENV-n` (upgrade or environment), `CAP-n` (record again). `line`: of the
    log, None where only the configuration tells. No text holds anything of the log but our own words.
    """

    id: str
    text: str
    confirm: str
    fix: str
    fix_id: str
    line: int | None
    source: str
    state: State
    knobs: Mapping[str, Value] = field(default_factory=dict)
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a row's symptom was seen; `line` None: in the configuration."""

    line: int | None


Finder = Callable[[TrainingLog, Settings], Seen | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: how its symptom is found, and what it means. An empty `source`: where the text was read."""

    id: str
    feature: Feature
    state: State
    text: str
    confirm: str
    fix: str
    fix_id: str
    seen: Finder
    knobs: Mapping[str, Value] = field(default_factory=dict)
    source: str = ""


def said(*ids: str) -> Finder:
    """Finds the first line that one of these patterns of `traces.training_log` knows."""

    def find(log: TrainingLog, settings: Settings) -> Seen | None:
        message = log.first(*ids)
        return None if message is None else Seen(message.line)

    return find


def refused(
    id: str,
    feature: Feature,
    text: str,
    confirm: str,
    fix: str,
    fix_id: str,
    knobs: Mapping[str, Value] | None = None,
    source: str = "",
) -> Row:
    """A row whose line, of the same id, refuses the configuration."""
    return Row(id, feature, "rejected", text, confirm, fix, fix_id, said(id), knobs or {}, source)
