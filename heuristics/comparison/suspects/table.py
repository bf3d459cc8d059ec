"""The rules of `causes.toml`, and what can move which rows: by that table, and by the fixes' own
knobs.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, product
from typing import Any, Final, Literal

from heuristics.comparison.causes.table import PLACE, Cause, expanded, named, shown_by, table
from heuristics.comparison.difference.changed import is_off, numbers, way
from heuristics.comparison.difference.rows import ComparedRows
from heuristics.comparison.suspects.shown import VIEWED
from heuristics.comparison.suspects.view import matches
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix
from heuristics.result.compared import ComparedChange, ComparedRow
from heuristics.result.judged import Level
from heuristics.rules.condition import Condition
from heuristics.run.run import Run
from traces.frozen import frozen
from traces.names.kernels import compute_classes
from traces.settings.settings import Framework
from traces.texts import Texts
from traces.toml_tables import TableRow, read_rows

GO_ALONG: Final = named("@go_along")

_RUNS: Final = (
    Run(),
    Run(given=Given(gpu="H100"), observed=Observed(moe=True, dispatcher="alltoall")),
    Run(
        given=Given(gpu="GB200", precision="mxfp8"),
        observed=Observed(moe=True, dispatcher="hybridep"),
    ),
)
"""Runs that fixes are asked for their knobs on: what they spell hangs on the GPU."""


class Mover(TableRow):
    """What can move rows: `what` are patterns of changed things, all others patterns of rows.

    More of it makes `slower` longer and `faster` shorter, less of it the reverse; `either` moves
    both ways. `is_broad`: it can move nearly everything, so that the rows say little of it.
    """

    what: Texts
    source: str
    slower: Texts = ()
    faster: Texts = ()
    either: Texts = ()
    is_broad: bool = False


class Crossed(TableRow):
    """Releases: from below `since`, not below `at_least`, to `since` or above, below `until`."""

    since: str
    at_least: str = "0"
    until: str = "9999"

    def by(self, change: ComparedChange) -> bool:
        base, new = numbers(change.base), numbers(change.new)
        low, border, high = map(numbers, (self.at_least, self.since, self.until))
        return bool(base and new) and low <= base < border <= new < high


class SuspectRule(Cause, kw_only=True):
    """A cause that two recordings show to come up on the new side.

    `slower`, `faster`, `either`: patterns of the rows that it makes longer, shorter, or either.
    `hides`: rows that it keeps from being seen on one side, so that it explains nothing of them.
    `observed`: what else a trace must show: ruled out where it does not hold; `signs`: how that is
    worded, each with its own condition if it has one. `measured`: a figure of a side, the time that
    the cause itself takes there: it explains no more than their difference. `changed`: patterns of
    changed things that are the cause, one of which went `way`, or across the releases `crossed`.
    `needs`: the evidence without which it is no suspect. `at_most`, `at_least`: between which its
    confidence lies.
    """

    source: str
    slower: Texts = ()
    faster: Texts = ()
    either: Texts = ()
    hides: Texts = ()
    observed: Condition | None = None
    signs: tuple[str | tuple[Condition, str], ...] = ()
    measured: str | None = None
    changed: Texts = ()
    way: Literal["more", "less"] | None = None
    crossed: Crossed | None = None
    needs: Literal["observed", "changed", "any"] = "any"
    at_most: Level = "high"
    at_least: Level = "low"

    def went(self, change: ComparedChange) -> bool:
        """Whether a thing changed the way that brings the cause; also where that is not known."""
        if self.crossed:
            return self.crossed.by(change)
        return self.way is None or way(change) in (0, 1 if self.way == "more" else -1)


class Look(TableRow):
    """What to look at where these rows moved and no cause is proven."""

    rows: Texts
    next: str


class Causes(TableRow):
    """The table, each row written out. `looks`: the first whose rows match is of a row; the last
    has all.
    """

    movers: tuple[Mover, ...]
    rules: tuple[SuspectRule, ...]
    looks: tuple[Look, ...]


@cache
def causes() -> Causes:
    """What can move which rows by itself, where no fix of the catalogue has it, and the causes, in
    order.
    """
    sources = table()["sources"]
    movers = (expanded(row, {}, "") for row in table()["movers"])
    rows: dict[str, Any] = {
        "movers": [{**row, "source": sources.get(row["source"], row["source"])} for row in movers],
        "rules": [*_rules()],
        "looks": [expanded(row, {}, "") for row in table()["looks"]],
    }
    return read_rows(rows, Causes, PLACE, VIEWED.readers)


def _rules() -> Iterator[dict[str, Any]]:
    families = table()["families"]
    for unit, unit_rows in groupby(shown_by("traces"), lambda row: row.pop("each", "")):
        rows = [*unit_rows]
        if unit == "family":
            for key, row in product(families, rows):
                yield expanded(row, families[key], key)
        else:
            for row, key in product(rows, compute_classes() if unit else ("",)):
                yield expanded(row, {}, key)


@frozen
class Movable:
    """Rows that a change can have moved the way it went; `is_broad`: it can move nearly
    everything.
    """

    rows: ComparedRows
    is_broad: bool
    source: str


def movable(change: ComparedChange, rows: Sequence[ComparedRow]) -> Movable:
    """`source`: of the first that can move one of them."""
    names, is_broad, source = set[str](), False, ""
    for mover in (*causes().movers, *fix_movers()):
        if matches(change.what, mover.what):
            for row in rows:
                if _moves(mover, change, row):
                    names.add(row.row)
                    is_broad |= mover.is_broad
                    source = source or mover.source
    return Movable(tuple(row for row in rows if row.row in names), is_broad, source)


def _moves(mover: Mover, change: ComparedChange, row: ComparedRow) -> bool:
    """Whether a change can move a row the way it moved; where its direction is unknown, either
    way.
    """
    if matches(row.row, mover.either):
        return True
    with_it, against_it = mover.slower, mover.faster
    if row.delta_ns > 0:
        with_it, against_it = mover.faster, mover.slower
    went = way(change)
    return (went != 1 and matches(row.row, with_it)) or (
        went != -1 and matches(row.row, against_it)
    )


@cache
def fix_movers() -> tuple[Mover, ...]:
    """What fixes of the catalogue switch on, and the rows of the kinds that they act on."""
    movers = []
    for fix in CATALOGUE.values():
        rows = rows_of(fix)
        for knob, is_switch in _knobs(fix).items():
            mover = Mover((knob,), fix.sources[0], either=rows)
            if is_switch:
                mover = Mover((knob,), fix.sources[0], faster=rows)
            movers.append(mover)
    return tuple(movers)


def rows_of(fix: Fix) -> Texts:
    """Rows of the step that a fix acts on; none where it acts on all of its wall."""
    prefix = table()["walls"][fix.wall]
    of_kind = table()["kinds"]
    return tuple(row for kind in fix.kinds for row in of_kind.get(kind, (f"{prefix}.{kind}",)))


def _knobs(fix: Fix) -> dict[str, bool]:
    """Knobs that a fix sets to something, and whether it switches them on. What it leaves out is no
    mover.
    """
    knobs = dict[str, bool]()
    frameworks: tuple[Framework, Framework] = ("megatron_lm", "megatron_bridge")
    for run, framework in product(_RUNS, frameworks):
        for knob, value in fix.change(run).of(framework, run.settings).items():
            if not is_off(value) and not matches(knob, GO_ALONG):
                knobs[knob] = value is True
    return knobs
