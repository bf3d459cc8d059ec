"""One pair, simulated, recorded, diagnosed, compared, and held beside what is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, Final

from bench.compare_score.cases import Case, more_sides, sides, views
from bench.compare_score.mirror import held, mirrored
from bench.compare_score.sides import diagnosed, simulate, true_delta
from bench.compare_score.suspects import may_stand_first
from heuristics.comparison.comparison import compare
from reports.result.codec import encode
from reports.result.read import of_one_run, typed

DECIDING: Final = 4
"""Steps a side from which a pair can be decided: of 4 against 4, one order in 35 has none overlap."""
_FIRST_ROWS: Final = 3
"""Within which both of two causes are to be found."""


@dataclass(frozen=True, slots=True)
class Result:
    """A scored pair. Differences in ns per step, new less base; `rows` in their order, without `noise`.

    `used`: steps of base and new. `low_ns`, `high_ns`: the interval, None where there is none. `adds_up`:
    rows to the step, and the parts of every row to the row. `mirrors`: the same with the sides swapped.
    `rereads`: the same from all documents as JSON. `error`: why there is no comparison.
    """

    case: Case
    true_ns: float = 0.0
    base_ns: float = 0.0
    used: tuple[int, int] = (0, 0)
    verdict: str = ""
    delta_ns: int = 0
    low_ns: int | None = None
    high_ns: int | None = None
    rows: tuple[tuple[str, int], ...] = ()
    suspects: tuple[str, ...] = ()
    adds_up: bool = False
    mirrors: bool = False
    rereads: bool = False
    error: str = ""

    @property
    def enough_steps(self) -> bool:
        """Whether the steps can tell."""
        return min(self.used) >= DECIDING

    @property
    def refused(self) -> bool:
        """Whether it was not compared, which no pair here asks for."""
        return self.verdict == "not_comparable"

    @property
    def alarm(self) -> bool:
        """Whether a side is called slower that is not."""
        return not self.case.changes and self.verdict in ("regression", "improvement")

    @property
    def true_frac(self) -> float:
        """The true difference, as part of a step of base."""
        return self.true_ns / self.base_ns if self.base_ns else self.case.frac

    @property
    def verdict_right(self) -> bool:
        """The way it truly went, decided from the true difference on that its case says; `undecided` below
        the steps that can tell. Of what did not change: neither slower nor faster, and not refused.
        """
        if not self.case.changes:
            return self.verdict in ("no_change", "undecided")
        if not self.enough_steps:
            return self.verdict == "undecided"
        way = "regression" if self.true_frac > 0 else "improvement"
        if abs(self.true_frac) >= self.case.decided_from:
            return self.verdict == way
        return self.verdict in (way, "undecided", "no_change")

    @property
    def suspect_false(self) -> bool:
        """Whether the first suspect claims what was not done; none claims nothing."""
        return bool(self.suspects) and not may_stand_first(self.suspects[0], self.case.suspects)

    @property
    def rows_right(self) -> bool:
        """The right row first; of two causes, both within the first three."""
        if not self.case.rows:
            return True
        names = [row for row, _ in self.rows]
        if len(self.case.rows) == 1:
            return bool(names) and any(fnmatchcase(names[0], row) for row in self.case.rows[0])
        return all(rows & set(names[:_FIRST_ROWS]) for rows in self.case.rows)

    @property
    def covers(self) -> bool | None:
        """Whether the interval holds the true difference; None without an interval."""
        if self.low_ns is None or self.high_ns is None:
            return None
        return self.low_ns <= self.true_ns <= self.high_ns


def score(case: Case) -> Result:
    """Score one pair; whatever goes wrong in it is in the result, and the others go on."""
    try:
        return _scored(case)
    except Exception as error:
        return Result(case, error=f"{type(error).__name__}: {error}")


def _scored(case: Case) -> Result:
    base, new = sides(case)
    one, other = (
        diagnosed(simulate(side, seed, case.step_count), view)
        for side, seed, view in zip((base, new), case.noise_seeds, views(case), strict=True)
    )
    more = [
        diagnosed(simulate(side, seed, case.step_count), views(case)[0])
        for side, seed in zip(more_sides(case), case.more_seeds, strict=False)
    ]
    told = _compared(one, other, more)
    low_ns, high_ns = told["step_delta_ci95_ns"] or (None, None)
    true_ns, base_ns = 0.0, 0.0
    if case.changes and (case.kind or low_ns is not None):
        true_ns, base_ns = true_delta(base, new, case.true_seeds, case.step_count)
    return Result(
        case,
        true_ns=true_ns,
        base_ns=base_ns,
        used=(told["size"]["base_count"], told["size"]["new_count"]),
        verdict=told["verdict"],
        delta_ns=told["step_delta_ns"],
        low_ns=low_ns,
        high_ns=high_ns,
        rows=tuple((row["row"], row["delta_ns"]) for row in told["attribution"] if row["row"] != "noise"),
        suspects=tuple(suspect["id"] for suspect in told["suspects"]),
        adds_up=_adds_up(told, one, other),
        mirrors=bool(more) or held(_compared(other, one)) == mirrored(told),
        rereads=_compared(_reread(one), _reread(other), list(map(_reread, more))) == told,
    )


def _compared(
    base: Mapping[str, Any], new: Mapping[str, Any], more: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The document. `more`: further recordings of what base is."""
    further = [of_one_run(typed(one)) for one in more]
    return encode(compare(of_one_run(typed(base)), of_one_run(typed(new)), more_base=further))


def _reread(document: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


def _adds_up(told: Mapping[str, Any], base: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Rows to the difference of means, to the ns, and count, duration and overlap to every row."""
    parts = ("count_ns", "duration_ns", "overlap_ns")
    split = [row for row in told["attribution"] if row["count_ns"] is not None]
    whole_ns = round(_mean_step_ns(new) - _mean_step_ns(base))
    return (
        told["step_delta_ns"] == whole_ns == sum(row["delta_ns"] for row in told["attribution"])
        and all(sum(row[part] for part in parts) == row["delta_ns"] for row in split)
    )  # fmt: skip


def _mean_step_ns(document: Mapping[str, Any]) -> Fraction:
    rank = document["ranks"][0]
    return Fraction(rank["budget_ns"]["window"], len(rank["steps"]["used"]) or 1)
