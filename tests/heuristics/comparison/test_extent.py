"""A setting taken further than planned: its own range where the replay of base has one, else no judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from heuristics.comparison.comparison import compare
from heuristics.comparison.difference.subject import Value
from heuristics.result.expected import Expected, ExpectedExtent
from heuristics.result.judged import Fix, Knobs
from heuristics.result.result import Result
from tests.doubles.comparison import configuration, rank, result, row
from tests.doubles.result import double
from traces.missing import known
from traces.sections.rank import Replay, Saving

MS = 1_000_000
MODULES = "cuda_graph_modules"
PLANNED = ("moe_router", "moe_preprocess")


def steps(ms: float) -> tuple[int, ...]:
    """Steps within 0.1 ms of a length, which is their mean."""
    return tuple(round(ms * MS) + (place % 3 - 1) * MS // 10 for place in range(21))


def side(ms: float, scopes: Mapping[str, float], knobs: Mapping[str, Value] | None, **fields: Any) -> Result:
    """Steps that the host makes so long; `scopes`: what of each module is in graphs."""
    replay = Replay(0.0, 0.5, 0.0, fields.pop("changes", ()))
    detected = {"graph_share_frac": max(scopes.values()), "graph_scopes_frac": scopes}
    found = rank(row("launch_starved.launch", *steps(ms)), detected=detected, replay=replay)
    return result(found, configuration=configuration(knobs or {}), **fields)


def saving(name: str, low_ms: int | None, high_ms: int) -> Saving:
    """In each of the steps."""
    return Saving(f"graph_{name}", None if low_ms is None else 21 * low_ms * MS, 21 * high_ms * MS)


CHANGES = (saving("attn", 19, 23), saving("moe_router", 12, 16), saving("scopes", 22, 27))
FLAGS = ("--cuda-graph-impl transformer_engine", f"--cuda-graph-modules {' '.join(PLANNED)}")
HST_3 = double(Fix, id="HST-3", knobs=Knobs(FLAGS, (), (), (), ()), gain_frac=(0.12, 0.18))
OFF = dict.fromkeys(("attn", *PLANNED), 0.0)


def base(*changes: Saving) -> Result:
    """A step of 100 ms, without graphs."""
    return side(100, OFF, None, fixes=(HST_3,), changes=changes)


def only(before: Result, after: Result) -> Expected:
    (one,) = compare(before, after).expected
    return one


def test_graphs_of_other_modules_have_the_range_of_these_modules() -> None:
    """Attention gives 19 ms at least; with the router 39 at most, but all modules give no more than 27."""
    one = only(base(*CHANGES), side(74, {**OFF, "attn": 1.0, "moe_router": 0.5}, None))
    assert one.predicted_ns == (19 * MS, 27 * MS)
    more = base(saving("attn", 30, 31), CHANGES[-1])  # than all modules together
    assert only(more, side(74, {**OFF, "attn": 1.0}, None)).predicted_ns == (27 * MS, 27 * MS)
    assert (one.outcome, one.conclusion) == ("met", "as_predicted")
    assert one.extent == ExpectedExtent(MODULES, PLANNED, ("attn", "moe_router"), True)


def test_without_a_replay_of_these_modules_the_range_is_not_held_against_them() -> None:
    after = side(74, {**OFF, "attn": 1.0, "moe_router": 0.9}, None)
    for changes in ((), CHANGES[1:]):
        one = only(base(*changes), after)
        assert one.predicted_ns == (12 * MS, 18 * MS)
        assert (one.outcome, one.conclusion) == ("undecided", "other_extent")
        assert one.extent is not None
        assert not one.extent.ranged


@pytest.mark.parametrize("knobs", [None, {"cuda_graph_impl": "transformer_engine", MODULES: ("attn",)}])
def test_a_range_without_a_lower_end_stays_so(knobs: dict[str, Value] | None) -> None:
    one = only(base(saving("attn", None, 23)), side(80, {**OFF, "attn": 1.0}, knobs))
    low, high = known(one.predicted_ns) or (0, 0)
    assert (known(low), high, one.outcome) == (None, 23 * MS, "met")


def test_an_earlier_result_knows_no_modules_and_keeps_its_plan() -> None:
    after = side(74, {**OFF, "attn": 1.0}, None)
    ranks = (replace(after.ranks[0], detected=replace(after.ranks[0].detected, graph_scopes_frac=UNSET)),)
    one = only(base(*CHANGES), replace(after, ranks=ranks))
    assert (one.predicted_ns, one.extent, one.conclusion) == ((12 * MS, 18 * MS), None, "more_than_predicted")
