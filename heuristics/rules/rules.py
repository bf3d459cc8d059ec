"""All rules, read once from the tables beside this file, in the order of their subjects."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from heuristics.rules.added import added_rules
from heuristics.rules.condition import READERS
from heuristics.rules.rule import Rule
from traces.toml_tables import read_table
from traces.training_log.known_lines import KnownLines, shared_lines

SUBJECTS: Final = (
    *("layout", "pipeline", "router", "dispatcher", "flex", "ep_overlap", "delayed_wgrad", "graphs"),
    *("recompute", "offload", "precision", "optimizer_ddp", "fsdp", "mtp_context", "training"),
    *("environment", "reported"),
)
"""Tables, in the order in which their rules are reported."""


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id: ours, then those of plug-ins. Raises `WrongRow`."""
    ours = {rule.id: rule for subject in SUBJECTS for rule in rows(subject)}
    return {**ours, **added_rules(ours)}


@cache
def rows(subject: str) -> tuple[Rule, ...]:
    """The rules of one table. Raises `WrongRow`."""
    return read_table("heuristics.rules", f"{subject}.toml", dict[str, tuple[Rule, ...]], READERS)["rule"]


@cache
def known_lines() -> KnownLines:
    """Lines of a log: each rule's own message, then those that several rules print or none."""
    return KnownLines((*(rule.line for rule in rules().values() if rule.message), *shared_lines()))
