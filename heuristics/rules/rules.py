"""All rules, read once from the tables beside this file, in the order of their subjects."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NotRequired, TypedDict, cast

from packaging.version import Version

from heuristics.rules.added import added_rules
from heuristics.rules.condition import Condition, condition
from heuristics.rules.examples import EXAMPLES
from heuristics.rules.rule import By, Level, Rule, alternatives
from traces.settings.settings import Value

SUBJECTS: Final = (
    *("layout", "pipeline", "router", "dispatcher", "flex", "ep_overlap", "delayed_wgrad", "graphs"),
    *("recompute", "offload", "precision", "optimizer_ddp", "fsdp", "mtp_context", "training"),
    *("environment", "reported"),
)
"""Tables, in the order in which their rules are reported."""


class Row(TypedDict):
    """A row as it is written. `set`: "null" is null, as TOML has none.

    `cure`: text, or the ways to meet the rule, each with the condition under which a run has it.
    """

    id: str
    text: str
    by: By
    cure: str | dict[str, str]
    cures: NotRequired[dict[str, str]]
    feature: NotRequired[str]
    needs: NotRequired[str]
    forbids: NotRequired[str]
    level: NotRequired[Level | Literal["guide"]]
    since: NotRequired[str]
    until: NotRequired[str]
    lines: NotRequired[list[str]]
    set: NotRequired[dict[str, object]]
    along: NotRequired[bool]
    example: NotRequired[str]
    fix: NotRequired[str]
    guide: NotRequired[str]
    same: NotRequired[list[str]]
    source: NotRequired[str]


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id: ours, then those of plug-ins."""
    sources = cast("dict[str, str]", _table("sources"))
    ours = {rule.id: rule for subject in SUBJECTS for rule in (_rule(row, sources) for row in rows(subject))}
    return {**ours, **added_rules(lambda row: _rule(cast(Row, row), sources), ours)}


def rows(subject: str) -> list[Row]:
    """The rows of a table as they are written."""
    return cast("list[Row]", _table(subject)["rule"])


def _table(name: str) -> dict[str, object]:
    text = files("heuristics.rules").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _rule(row: Row, sources: Mapping[str, str]) -> Rule:
    cure = row["cure"]
    ways = row.get("cures", {}) if isinstance(cure, str) else cure
    return Rule(
        id=row["id"],
        text=row["text"],
        by=row["by"],
        cure=cure if isinstance(cure, str) else alternatives(cure),
        source=row.get("source", f"{{{row['by']}}}").format_map(sources),
        feature=_condition(row.get("feature")),
        needs=_condition(row.get("needs")),
        forbids=_condition(row.get("forbids")),
        level=row.get("level", "error"),
        since=_release(row.get("since")),
        until=_release(row.get("until")),
        lines=tuple(row.get("lines", ())),
        example=EXAMPLES[row["example"]] if "example" in row else None,
        set={knob: written_value(value) for knob, value in row.get("set", {}).items()},
        along=row.get("along", False),
        cures={way: condition(needed) for way, needed in ways.items()},
        fix=row.get("fix", ""),
        guide=row.get("guide", ""),
        same=tuple(row.get("same", ())),
    )


def _condition(text: str | None) -> Condition | None:
    return None if text is None else condition(text)


def _release(text: str | None) -> Version | None:
    return None if text is None else Version(text)


def written_value(written: object) -> Value:
    """A value as TOML has it: "null" is null, a list is a tuple."""
    if written == "null":
        return None
    return tuple(written) if isinstance(written, list) else cast(Value, written)
