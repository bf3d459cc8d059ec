"""What the first screen says of a saving, of time that no wall explains, and of a bar that promises more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doubles.pages import first_screen, flat
from tests.recordings.simulated import scenario

Document = dict[str, Any]


def with_time(document: Document, bucket: str, share: float) -> Document:
    """The document with this share of each window in a bucket, taken from compute."""
    ranks = []
    for rank in document["ranks"]:
        window_ns = rank["budget_ns"]["window"]
        rest = {"exposed_comm": 0, "exposed_copy": 0, "idle": 0, bucket: round(share * window_ns)}
        budget = {"window": window_ns, "compute": window_ns - sum(rest.values()), **rest}
        shares = {key: ns / window_ns for key, ns in budget.items() if key != "window"}
        ranks.append({**rank, "budget_ns": budget, "budget_frac": shares})
    return {**document, "ranks": ranks}


def with_wall(document: Document, wall: str, **changed: Any) -> Document:
    walls = [{**one, **changed} if one["id"] == wall else one for one in document["walls"]]
    return {**document, "walls": walls}


def with_fixes(document: Document, *changed: Document) -> Document:
    fixes = [{**fix, **new} for fix, new in zip(document["fixes"], changed, strict=False)]
    return {**document, "fixes": fixes, "combined": []}


def test_what_no_replay_prices_acts_on_its_share_which_is_said_once() -> None:
    document = scenario("memory")
    first, second = (fix["id"] for fix in document["fixes"][:2])
    unpriced = {"gain_replayed": False, "gain_frac": [None, 0.52], "acts_on": {"allocator": 0.52}}
    text = flat(
        first_screen(
            with_fixes(document, {**unpriced, "shares_with": [second]}, {**unpriced, "shares_with": [first]}),
            width=120,
        )
    )
    assert f"targets 52 % [{first}]" in text
    assert "Evidence: allocator calls 52 %. Else, on the same time: " in text
    assert f"[{second}]" in text.partition("Else, on the same time: ")[2].partition("Top kernels")[0]
    assert text.count("targets 52 %") == 1
    assert "saves" not in text.partition("DO THIS")[2].partition("Their savings")[0]


def test_a_ceiling_that_was_replayed_is_a_saving() -> None:
    document = with_fixes(scenario("memory"), {"gain_replayed": True, "gain_frac": [None, 0.52]})
    assert "saves up to 52 %" in first_screen(document)


def test_a_larger_batch_is_compared_by_time_per_token() -> None:
    document = scenario("memory")
    note = "Compare by time per token"
    assert note in first_screen(with_fixes(document, {"per_token": True}))
    assert note not in first_screen(with_fixes(document, {"per_token": False}))


@pytest.mark.parametrize(
    ("bucket", "said"),
    [
        ("idle", "NO SINGLE CAUSE OF 10 % The GPU is idle for 20 % of the time."),
        ("exposed_comm", "NO SINGLE CAUSE OF 10 % Exposed communication takes 20 % of the time."),
        ("exposed_copy", "SLOWED BY exposed copies (20 %)."),
    ],
)
def test_a_fifth_without_compute_leads_although_every_wall_is_clear(bucket: str, said: str) -> None:
    text = flat(first_screen(with_time(scenario("healthy"), bucket, 0.2)))
    assert said in text
    assert "targets 20 %" in text


def test_copies_that_take_most_of_the_time_lead_before_a_host_that_costs_less() -> None:
    copied = with_time(scenario("host_overhead"), "exposed_copy", 0.6)
    text = flat(first_screen(with_wall(copied, "host_overhead", cost_frac=0.3)))
    assert "BOUND BY COPIES Exposed copies take 60 % of the time. Beside it: host" in text
    assert "BOUND BY COPIES" not in flat(first_screen(with_wall(copied, "host_overhead", cost_frac=0.7)))


def test_a_part_of_time_whose_wall_is_open_is_what_may_slow_the_run() -> None:
    unknown = {"outcome": "unmeasurable", "cost_ns": None, "cost_frac": None, "cost_by_kind_ns": None}
    document = with_time(scenario("healthy"), "exposed_comm", 0.3)
    place = [wall["id"] for wall in document["walls"]].index("communication")
    gaps = [
        {"path": f"walls[{place}].{key}", "reason": "not told", "cure": "record all"}
        for key in unknown
        if key != "outcome"
    ]
    document = {**document, "missing": [*document["missing"], *gaps]}
    document = with_wall(
        document, "communication", **unknown, at_most_frac=0.4, missing=["not told"], cure="record all"
    )
    text = flat(first_screen(document))
    assert (
        "MAY BE SLOWED BY exposed communication (30 % of the time). Its cost is not proven (at most 40 %)"
        in text
    )
