"""Several ranks of one run: the lines of the first screen, and the table of ranks."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.result.result import Merged, Result
from reports.content.analysis.called import short_name
from reports.content.analysis.run import ranks_part, run_headline, run_lines
from reports.content.names import plain
from tests.doubles.result import double
from traces.missing import Missing
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import LikeRanks, RankInRun, Run, RunProblem
from traces.sections.trace import Trace

MS = 1_000_000
NO_CLOCK = Missing("run.late", "no collective fixes the clocks", "record more steps")


def late(cause: str, **fields: Any) -> dict[str, Any]:
    return {"cause": Cause(cause), "index": 2, "rank": 2, "wait_ns": 60 * MS, "cost_ns": 4 * MS, **fields}


def result(count: int = 4, *, numbered: bool = True, **fields: Any) -> Result:
    """Ranks whose step is 20 ms; 80 of 100 ms of their communication is waiting. `fields`: of the run."""
    ranks = tuple(
        double(Rank, trace=f"{place}.sqlite", device=place, rank=place if numbered else None)
        for place in range(count)
    )
    figures = [
        double(
            RankInRun,
            index=place,
            rank=place,
            step_ns=20 * MS,
            waited_ns=5 * MS,
            caused_ns=MS,
            device_factor=1.0,
        )
        for place in range(count)
    ]
    known = {
        "ranks_seen": count,
        "world_size": count,
        "clocks": {"aligned": True, "residual_ns": 1_000},
        "ranks": tuple(figures),
        "groups": (double(LikeRanks, ranks=tuple(range(count))),),
        "wait_ns": 80 * MS,
        "transfer_ns": 20 * MS,
        "collectives": 50,
        "steps": 5,
        "late": late("none", index=None, rank=None),
    }
    traces = tuple(double(Trace, name=f"{place}.sqlite") for place in range(count))
    return double(Result, ranks=ranks, traces=traces, run=double(Run, **(known | fields)))


def lines(shown: Result) -> list[str]:
    return [f"{one.label}: {plain(one.said)}" for one in run_lines(shown)]


def test_one_line_has_the_ranks_their_steps_and_their_waiting() -> None:
    assert lines(result())[0] == ("4 of 4 ranks: steps of 20.0 ms; 80 % of communication time is waiting")


def test_two_of_64_ranks_are_named_so_and_nothing_is_claimed_of_the_others() -> None:
    first, second = lines(result(2, world_size=64))
    assert first.startswith("2 of 64 ranks: nothing is known of the others;")
    assert "at least 80 % of communication time is waiting" in first
    assert second.startswith("Straggler: none of these 2:")


def test_a_late_rank_has_its_cause_its_cost_what_repair_saves_and_the_first_check() -> None:
    ranks = [double(RankInRun, index=place, step_ns=20 * MS, device_factor=1.0) for place in range(4)]
    ranks[2] = double(RankInRun, index=2, step_ns=20 * MS, device_factor=1.5)
    without = {"step_ns": 20 * MS, "without_ns": 18 * MS, "saved_frac": 0.1}
    found = late("slow_device", repair="Check the GPU.", repair_first=True)
    shown = result(ranks=tuple(ranks), late=found, without=without)
    assert lines(shown)[1:] == [
        "Straggler: rank 2, GPU 2: its kernels take 1.50 times as long as on ranks with the same work. "
        "Costs 4.00 ms of a step and 75 % of all waiting; repair saves 10 % (replayed).",
        "First: Check the GPU.",
    ]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (late("slow_host"), "rank 2, GPU 2: its host launches work late"),
        (late("slow_link"), "rank 2, GPU 2: it arrives with the others, and its data takes longer to move"),
        (late("data_loader"), "rank 2, GPU 2: it begins steps late"),
        (late("routing_imbalance"), "other ranks; the largest expert work is 1.80 times the mean."),
        (late("routing_imbalance", index=None), "another one by layer and step: the router spreads"),
        (late("pipeline_imbalance", index=None, group=0), "ranks 0 to 3: their pipeline stage"),
        (
            late("rotating_jitter", index=None, by_step=(0, None, 3, 0)),
            "another one from step to step (in 3 of 4 steps: rank 0, GPU 0, rank 3, GPU 3).",
        ),
    ],
)
def test_every_cause_has_its_words(found: dict[str, Any], said: str) -> None:
    line = lines(result(late=found, imbalance=1.8))[1]
    assert said in line
    assert "repair saves an unknown share" in line


def test_where_nobody_can_say_who_is_late_the_reason_stands_with_its_cure() -> None:
    assert lines(result(late=NO_CLOCK))[1] == (
        "Straggler: unknown: no collective fixes the clocks. To learn it: record more steps."
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"indices": (2,), "host": None}, "rank 2, GPU 2: 76 % of all waiting in 5 collectives of all ranks"),
        ({"indices": (2, 3), "host": "host 1"}, "host 1: rank 2, GPU 2, rank 3, GPU 3: 76 % of all waiting"),
        ({"indices": (2,), "host": None, "by_order": True}, "all ranks, paired by nothing but their order"),
    ],
)  # fmt: skip
def test_who_arrives_last_is_said_though_nobody_knows_why(fields: dict[str, Any], said: str) -> None:
    known = {"collectives": 5, "wait_ns": MS, "waiting_frac": 0.76, "by_order": False, "confidence": "medium"}
    line = lines(result(late=NO_CLOCK, arrives_last=known | fields))[1]
    assert line.startswith("Arrives last: ")
    assert said in line
    assert "Confidence: medium. Why is unknown: no collective fixes the clocks." in line


def merged(**fields: Any) -> str:
    """The headline of a merged run, as its label and what it says."""
    run = result(**fields).run
    assert isinstance(run, Run)
    said = run_headline(double(Merged, traces=tuple(f"{place}.sqlite" for place in range(4)), run=run))
    return f"{said.label}: {plain(said.said)}"


def test_a_merged_run_leads_with_who_is_late_or_why_nobody_knows() -> None:
    assert merged() == "NO LATE RANK: No rank stands out from how much ranks with the same work differ."
    assert merged(late=NO_CLOCK) == "LATE RANK UNKNOWN: No collective fixes the clocks."
    assert merged(late=late("slow_host", repair_first=True)).startswith("SLOWED BY: ")
    assert merged(late=late("slow_host")).startswith("A LATE RANK COSTS LITTLE: ")


def test_what_is_wrong_with_the_set_is_one_line_each() -> None:
    problems = (
        double(
            RunProblem, kind="mixed_runs", traces=("a", "b", "c", "d"), reason="another run", left_out=True
        ),
        double(RunProblem, kind="truncated", traces=("e",), reason="it ends early"),
        double(RunProblem, kind="missing_ranks", reason="of 8 ranks", ranks=(3, 5, 6, 7)),
    )
    assert lines(result(problems=problems))[2:] == [
        "Recorded: a, b, c and 1 more: left out, another run.",
        "Recorded: e: it ends early.",
        "Recorded: Not recorded: ranks 3, 5 to 7.",
    ]


def test_one_rank_alone_has_no_line_no_part_and_no_map() -> None:
    alone = double(Result, ranks=(double(Rank),))
    assert [*run_lines(alone), *ranks_part(alone)] == []


@pytest.mark.parametrize(
    ("names", "devices", "called"),
    [
        (("a_WITHHELD#1.sqlite", "a_WITHHELD#2.sqlite"), (0, 1, 0, 1), "GPU 1 of node 1"),
        (("a_WITHHELD#1.sqlite", "a_WITHHELD#2.sqlite"), (0, 1, 2, 3), "GPU 3"),  # may be of one node
        (("run1.sqlite", "run2.sqlite"), (0, 1, 0, 1), "GPU 1 of run2.sqlite"),  # a name to look up
    ],
)
def test_a_gpu_of_a_recording_whose_name_is_withheld_is_of_a_node(
    names: tuple[str, str], devices: tuple[int, ...], called: str
) -> None:
    traces = tuple(double(Trace, name=name) for name in names)
    unknown = Missing("rank", "not recorded", "")
    ranks = tuple(
        double(Rank, trace=names[place // 2], device=device, rank=unknown)
        for place, device in enumerate(devices)
    )
    assert plain(short_name(double(Result, ranks=ranks, traces=traces), 3)) == called
