"""All rules, read once from the tables beside this file, in the order of their subjects."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, cast

from msgspec import Struct, ValidationError, convert
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


class Row(Struct, kw_only=True, forbid_unknown_fields=True):
    """A row as it is written. `set`: "null" is null, as TOML has none.

    `cure`: text, or the ways to meet the rule, each with the condition under which a run has it.
    """

    id: str
    text: str
    by: By
    cure: str | dict[str, str]
    cures: dict[str, str] = {}
    feature: str | None = None
    needs: str | None = None
    forbids: str | None = None
    level: Level | Literal["guide"] = "error"
    since: str | None = None
    until: str | None = None
    lines: tuple[str, ...] = ()
    set: dict[str, object] = {}
    along: bool = False
    example: str | None = None
    fix: str = ""
    guide: str = ""
    same: tuple[str, ...] = ()
    source: str = ""


class WrongRow(ValueError):
    """A row that is no rule; the message says what is wrong with it."""


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id: ours, then those of plug-ins. Raises `WrongRow`, which names file and row."""
    sources = cast("dict[str, str]", _table("sources"))
    ours = {}
    for subject in SUBJECTS:
        for row in _written(subject):
            try:
                rule = _rule(_row(row), sources)
            except ValueError as error:
                name = row.get("id", "a row without an id")
                raise WrongRow(f"heuristics/rules/{subject}.toml, {name}: {error}") from error
            ours[rule.id] = rule
    return {**ours, **added_rules(lambda row: _rule(_row(row), sources), ours)}


def rows(subject: str) -> list[Row]:
    """The rows of a table as they are written."""
    return [*map(_row, _written(subject))]


def _written(subject: str) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", _table(subject)["rule"])


def _table(name: str) -> dict[str, object]:
    text = files("heuristics.rules").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _row(written: Mapping[str, object]) -> Row:
    try:
        return convert(written, Row)
    except ValidationError as error:
        raise WrongRow(str(error)) from None


def _rule(row: Row, sources: Mapping[str, str]) -> Rule:
    if row.example is not None and row.example not in EXAMPLES:
        raise WrongRow(f"example {row.example!r} is none of heuristics/rules/examples.py")
    ways = row.cures if isinstance(row.cure, str) else row.cure
    return Rule(
        id=row.id,
        text=row.text,
        by=row.by,
        cure=row.cure if isinstance(row.cure, str) else alternatives(row.cure),
        source=_source(row, sources),
        feature=_condition(row.feature),
        needs=_condition(row.needs),
        forbids=_condition(row.forbids),
        level=row.level,
        since=_release(row.since),
        until=_release(row.until),
        lines=row.lines,
        example=EXAMPLES[row.example] if row.example else None,
        set={knob: written_value(value) for knob, value in row.set.items()},
        along=row.along,
        cures={way: condition(needed) for way, needed in ways.items()},
        fix=row.fix,
        guide=row.guide,
        same=row.same,
    )


def _source(row: Row, sources: Mapping[str, str]) -> str:
    """Where the rule is written: the row's own words, with names of `sources.toml`; else that of its `by`."""
    try:
        return (row.source or f"{{{row.by}}}").format_map(sources)
    except KeyError as error:
        raise WrongRow(f"source {error} is not in sources.toml") from None


def _condition(text: str | None) -> Condition | None:
    return None if text is None else condition(text)


def _release(text: str | None) -> Version | None:
    return None if text is None else Version(text)


def written_value(written: object) -> Value:
    """A value as TOML has it: "null" is null, a list is a tuple."""
    if written == "null":
        return None
    return tuple(written) if isinstance(written, list) else cast(Value, written)
