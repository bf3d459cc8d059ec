"""The causes of `causes.toml`, and which rows a change can move: by fixes, and by a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, product
from typing import Any, Final

from heuristics.comparison.suspects.evidence import EVIDENCE
from heuristics.comparison.suspects.rule import (
    Row,
    Rule,
    any_way,
    crossed,
    expanded,
    families,
    is_off,
    named,
    table,
    way,
    way_of,
)
from heuristics.comparison.suspects.view import matches
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix
from heuristics.result.compared import ComparedChange, ComparedRow
from heuristics.run.given import Given
from heuristics.run.observed import Observed
from heuristics.run.run import Run, WallId
from traces.names.kinds import compute_classes
from traces.settings.settings import Framework


@dataclass(frozen=True, slots=True)
class Mover:
    """What can move rows: `what` are patterns of changed things, all others patterns of rows.

    More of it makes `slower` longer and `faster` shorter, less of it the reverse; `either` moves both ways.
    `is_broad`: it can move nearly everything, so that the rows say little of it.
    """

    what: tuple[str, ...]
    source: str
    slower: tuple[str, ...] = ()
    faster: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    is_broad: bool = False


@cache
def movers() -> tuple[Mover, ...]:
    """What can move which rows by itself, where no fix of the catalogue has it."""
    sources = table()["sources"]
    return tuple(
        Mover(
            what=tuple(row["what"]),
            source=sources.get(row["source"], row["source"]),
            slower=named(*row.get("slower", ())),
            faster=named(*row.get("faster", ())),
            either=named(*row.get("either", ())),
            is_broad=row.get("is_broad", False),
        )
        for row in table()["movers"]
    )


@cache
def rules() -> tuple[Rule, ...]:
    """All causes, in the order of the table."""
    return tuple(
        rule for each, rows in groupby(table()["cause"], _each) for rule in _expand(each, tuple(rows))
    )


def _each(row: Row) -> str:
    return str(row.get("each", ""))


def _expand(each: str, rows: Sequence[Row]) -> Iterator[Rule]:
    """One rule a row; one a family and row, or one a row and class, where it is for each of them."""
    if each == "family":
        for key, family in families().items():
            yield from (_rule(row, key, family) for row in rows)
        return
    for row in rows:
        for key in compute_classes() if each == "class" else ("",):
            yield _rule(row, key, {})


def _rule(row: Row, key: str, family: Row) -> Rule:
    texts = {"next": table()["families_next"], **family, "key": key}
    sets = {**table()["sets"], **{f"family_{name}": one for name, one in family.items()}}

    def text(name: str) -> str:
        return str(row[name]).format_map(texts)

    def listed(name: str) -> tuple[str, ...]:
        return tuple(one.replace("{key}", key) for one in expanded(row.get(name, ()), sets))

    other: dict[str, Any] = {name: row[name] for name in ("needs", "at_most", "at_least") if name in row}
    if "observed" in row:
        name, *of = row["observed"]
        other["observed"] = partial(EVIDENCE[name], *((key,) if key else ()), *of)
    releases = row.get("crossed")
    return Rule(
        id=text("id"),
        title=text("title"),
        mirrored=text("mirrored"),
        next=text("next"),
        source=row["source"],
        slower=listed("slower"),
        faster=listed("faster"),
        either=listed("either"),
        changed=listed("changed"),
        went=crossed(**releases) if releases else way_of(row["way"]) if "way" in row else any_way,
        **other,
    )


_HOST_ROWS: Final = {
    "arrival": ("launch_latency.arrival", "launch_latency.kernel_gap"),
    "long_python_pauses": ("launch_starved.python",),
}
"""Kinds of the host wall that are rows of another name."""

GO_ALONG: Final = ("*te_rng_tracker", "moe_router_dtype", "ddp.use_distributed_optimizer")
"""What fixes set beside their own knobs, because those need it: it moves none of their rows by itself."""

_RUNS: Final = (
    Run(),
    Run(given=Given(gpu="H100"), observed=Observed(moe=True, dispatcher="alltoall")),
    Run(given=Given(gpu="GB200", precision="mxfp8"), observed=Observed(moe=True, dispatcher="hybridep")),
)
"""Runs that fixes are asked for their knobs on: what they spell hangs on the GPU."""


@dataclass(frozen=True, slots=True)
class Movable:
    """Rows that a change can have moved the way it went; `is_broad`: it can move nearly everything."""

    rows: tuple[str, ...]
    is_broad: bool
    sources: tuple[str, ...]


def movable(change: ComparedChange, rows: Sequence[ComparedRow]) -> Movable:
    """Which of the rows that moved a change can explain."""
    able = [one for one in (*movers(), *fix_movers()) if matches(change.what, one.what)]
    explained = tuple(row.row for row in rows if any(_moves(one, change, row) for one in able))
    used = [one for one in able if any(_moves(one, change, row) for row in rows)]
    sources = tuple(dict.fromkeys(one.source for one in used))
    return Movable(explained, any(one.is_broad for one in used), sources)


def _moves(mover: Mover, change: ComparedChange, row: ComparedRow) -> bool:
    """Whether a change can move a row the way it moved; where its direction is unknown, either way."""
    if matches(row.row, mover.either):
        return True
    longer = row.delta_ns > 0
    went = way(change)
    with_it, against_it = (mover.faster, mover.slower) if longer else (mover.slower, mover.faster)
    return (went != 1 and matches(row.row, with_it)) or (went != -1 and matches(row.row, against_it))


@cache
def fix_movers() -> tuple[Mover, ...]:
    """What fixes of the catalogue switch on, and the rows of the kinds that they act on."""
    found: dict[tuple[str, str], Mover] = {}
    for fix in CATALOGUE.values():
        rows = rows_of(fix)
        if not rows:
            continue
        for knob, is_switch in _knobs(fix).items():
            faster, either = (rows, ()) if is_switch else ((), rows)
            found[fix.id, knob] = Mover((knob,), fix.sources[0], faster=faster, either=either)
    return tuple(found.values())


def rows_of(fix: Fix) -> tuple[str, ...]:
    """Rows of the step that a fix acts on; none where it acts on all of its wall."""
    prefix: dict[WallId, str] = {
        "communication": "exposed_comm",
        "host_overhead": "launch_starved",
        "compute": "compute",
        "memory": "launch_starved",
    }
    return tuple(row for kind in fix.kinds for row in _HOST_ROWS.get(kind, (f"{prefix[fix.wall]}.{kind}",)))


def _knobs(fix: Fix) -> dict[str, bool]:
    """Knobs that a fix sets to something, and whether it switches them on. What it leaves out is no mover."""
    found: dict[str, bool] = {}
    frameworks: tuple[Framework, Framework] = ("megatron_lm", "megatron_bridge")
    for run, framework in product(_RUNS, frameworks):
        for knob, value in fix.change(run).of(framework, run.settings).items():
            if not is_off(value) and not matches(knob, GO_ALONG):
                found[knob] = value is True
    return found
