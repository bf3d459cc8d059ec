"""Two runs of several ranks: which rank is which, how groups moved, who was late and who is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from heuristics.comparison.comparison import compare
from heuristics.comparison.gate import Asked
from heuristics.comparison.ranks import compare_runs, like_groups, pair_ranks, same_size
from heuristics.comparison.size import Judged, judge_pairs
from heuristics.result.compared_ranks import ComparedGroup, ComparedRank, ComparedRun, LateState
from heuristics.result.result import Result
from reports.content.blocks import Sentence
from reports.content.comparison.details import ranks as lines
from reports.content.names import plain
from tests.doubles.comparison import rank, result, row
from tests.doubles.result import double
from traces.errors import EmptySelection
from traces.missing import Missing
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import LikeRanks, RankInRun, Run

MS = 1_000_000


def late(cause: Cause, index: int | None = None) -> dict[str, Any]:
    return {"cause": cause, "index": index, "rank": index, "wait_ns": 0, "cost_ns": 0, "by_step": ()}


def run(
    *groups: int,
    numbered: bool = True,
    caused_ms: dict[int, int] | None = None,
    step_ms: int = 10,
    **fields: Any,
) -> Result:
    """A run whose groups have so many ranks each; the k-th group has k attention kernels."""
    count, places = sum(groups), iter(range(sum(groups)))
    of_group = [tuple(next(places) for _ in range(size)) for size in groups]
    group_of = {place: number for number, members in enumerate(of_group) for place in members}
    members = [rank(rank=place if numbered else None, device=place, ledger=None) for place in range(count)]
    figures = tuple(
        double(
            RankInRun,
            index=place,
            rank=place if numbered else None,
            group=group_of[place],
            step_ns=step_ms * MS,
            waited_ns=MS,
            caused_ns=(caused_ms or {}).get(place, 0) * MS,
        )
        for place in range(count)
    )
    like = tuple(double(LikeRanks, ranks=places, attention_kernels=number, step_ns=step_ms * MS)
        for number, places in enumerate(of_group))  # fmt: skip
    known = {"ranks_seen": count, "world_size": count, "ranks": figures, "groups": like}
    known |= {"wait_ns": 30, "transfer_ns": 70, "late": late(Cause.NONE)}
    return result(*members, run=double(Run, **(known | fields)))


def devices(base: Result, new: Result) -> list[tuple[int, int, str]]:
    return [(one.base.device, one.new.device, one.by) for one in pair_ranks(base, new, None, None)]


def runs(base: Result, new: Result) -> ComparedRun:
    found = compare(base, new).run
    assert isinstance(found, ComparedRun)
    return found


def test_runs_of_other_numbers_of_ranks_are_matched_by_groups_of_like_ranks() -> None:
    assert devices(run(2, 2), run(4, 4)) == [
        (0, 0, "group"), (1, 1, "group"), (2, 4, "group"), (3, 5, "group")
    ]  # fmt: skip


NOBODY, UNKNOWN = late(Cause.NONE), Missing("run.late", "one step", "record several")
ONE, TWO, GPU = late(Cause.SLOW_HOST, 1), late(Cause.SLOW_HOST, 2), late(Cause.SLOW_DEVICE, 1)
FIRST, SECOND, DEVICE = "rank 1, GPU 1, slow host", "rank 2, GPU 2, slow host", "rank 1, GPU 1, slow device"


@pytest.mark.parametrize(("base", "new", "state", "said"), [
    (NOBODY, GPU, LateState.APPEARED, f"none in base; new: {DEVICE}."),
    (GPU, NOBODY, LateState.GONE, f"gone. In base: {DEVICE}."),
    (ONE, ONE, LateState.SAME, f"the same on both sides: {FIRST}."),
    (ONE, TWO, LateState.OTHER, f"another one. Base: {FIRST}; new: {SECOND}."),
    (ONE, GPU, LateState.OTHER, f"another one. Base: {FIRST}; new: {DEVICE}."),
    (NOBODY, NOBODY, LateState.NONE, "none on either side."),
    (UNKNOWN, TWO, LateState.UNKNOWN, f"unknown on one side at least. Base: unknown; new: {SECOND}."),
])  # fmt: skip
def test_the_late_rank_appears_goes_stays_or_is_unknown(
    base: Any, new: Any, state: LateState, said: str
) -> None:
    sides = run(4, late=base), run(4, late=new)
    assert runs(*sides).late.state is state
    shown: list[Sentence] = list(lines(compare(*sides)))
    assert plain(shown[1].said) == said
    several = late(Cause.SLOW_HOST)  # of no single rank
    found = [runs(run(4, late=several), run(4, late=one)).late.state for one in (several, ONE)]
    assert found == [LateState.SAME, LateState.OTHER]
    # rank 2 of groups of two is rank 4 of groups of four
    fours = (run(4, 4, late=late(Cause.SLOW_HOST, place)) for place in (4, 2))
    assert [runs(run(2, 2, late=TWO), one).late.state for one in fours] == found


def test_where_a_side_is_one_rank_alone_nothing_is_compared_of_ranks() -> None:
    for base, new in ((result(), result()), (result(), run(2)), (run(2), result())):
        assert compare_runs(base, new, pair_ranks(base, new, None, None)) is UNSET
    alone, untold = [(0, 0, "order")], run(2, numbered=False)
    assert devices(result(), untold) == devices(untold, result()) == alone


def made(*of: dict[str, Any]) -> Run:
    parts = {"attention_kernels": 2, "router_kernels": 1, "has_experts": True, "has_embedding": True}
    return double(Run, groups=tuple(double(LikeRanks, **{**parts, "has_loss": True, **one}) for one in of))


def test_groups_are_alike_in_all_their_parts_or_but_for_kernels_and_each_is_in_one_pair() -> None:
    for part in ("attention_kernels", "router_kernels", "has_experts", "has_embedding", "has_loss"):
        other = made({part: 0 if part.endswith("kernels") else False}, {})
        assert like_groups(made({}), other) == ((0, 1),)
        assert like_groups(made({"attention_kernels": 9}), other) == ((0, int(part.startswith("has"))),)
    assert like_groups(made({}, {}), made({})) == like_groups(made({}), made({}, {})) == ((0, 0),)
    assert like_groups(made({}, {}), made({}, {})) == ((0, 0), (1, 1))


def test_runs_are_as_large_where_as_many_ranks_were_seen_or_are_there() -> None:
    sizes = ((2, 8), (2, 9), (4, 8), (4, 9), (8, 2))
    base, *others = (result(run=double(Run, ranks_seen=seen, world_size=all_)) for seen, all_ in sizes)
    assert [same_size(base, one) for one in (*others, result())] == [True, True, False, False, True]
    small, large = run(1, groups=()), run(2, groups=())
    assert devices(small, large) == [(0, 0, "rank")]
    assert runs(small, large).ranks == ()  # what has the same number may be another stage
    bare = run(2, ranks=())  # what stands in one run alone has no figures
    assert runs(run(2), bare).ranks == runs(bare, run(2)).ranks == ()


def test_groups_and_ranks_have_the_places_and_figures_of_their_own_sides() -> None:
    """Groups of 2 and 1 ranks in base, and of 1 and 3 in new, which stand behind one that base lacks."""
    base = run(2, 1, caused_ms={2: 9})
    new = run(1, 3, 1, caused_ms={0: 5}, step_ms=12, wait_ns=0, transfer_ns=0)
    assert isinstance(new.run, Run)
    waited = tuple(replace(one, waited_ns=4 * one.index * MS) for one in new.run.ranks)
    *first, last = new.run.groups
    found = runs(base, replace(new, run=replace(new.run, groups=(last, *first), ranks=waited)))
    assert (found.base_ranks, found.new_ranks, found.base_waiting_frac) == (3, 5, 0.3)
    assert isinstance(found.new_waiting_frac, Missing)
    assert found.groups == (ComparedGroup(0, 1, 2, 1, 2 * MS), ComparedGroup(1, 2, 1, 3, 2 * MS))
    assert found.ranks == (ComparedRank(2, 1, 1, "group", 2 * MS, 3 * MS, -9 * MS),
        ComparedRank(0, 0, 0, "group", 2 * MS, -MS, 5 * MS))  # fmt: skip


def waiting(wait_ms: int, comm_ms: int, found: dict[str, Any]) -> Result:
    """Two ranks with 20 ms of compute in two steps; the first waits, rank 1 may be late."""
    length_ns = (10 + comm_ms) * MS
    rows = (row("compute.gemm", 10 * MS, 10 * MS),
        row("exposed_comm.ep_dispatch", comm_ms * MS, comm_ms * MS))  # fmt: skip
    members = tuple(
        rank(*rows, lengths_ns=(length_ns, length_ns), rank=place, device=place) for place in (0, 1)
    )
    figures = tuple(
        double(RankInRun, index=place, rank=place, waited_ns=wait_ms * MS * (1 - place)) for place in (0, 1)
    )
    known = double(Run, ranks_seen=2, world_size=2, ranks=figures, late=found)
    return result(*members, run=known)


def test_a_rank_that_came_late_is_the_suspect_and_no_link() -> None:
    base, new = waiting(1, 2, NOBODY), waiting(6, 8, GPU)
    for one, other, title in (
        (base, new, "A rank makes the others wait"),
        (new, base, "No rank makes the others wait any more"),
    ):
        first = compare(one, other).suspects[0]
        assert (first.id, first.title) == ("late_rank", title)
        assert first.seen[0] == "late rank: rank 1, slow device"


def of(number: int | None, device: int, *lengths_ms: int) -> Rank:
    lengths_ns = tuple(length * MS for length in lengths_ms)
    return rank(lengths_ns=lengths_ns, rank=number, device=device, ledger=None)


def test_a_process_with_two_gpus_has_one_number_twice_and_each_gpu_its_own_pair() -> None:
    both = replace(result(), ranks=(of(0, 0, 10, 10), of(0, 1, 20, 20)))
    turned = replace(both, ranks=both.ranks[::-1])
    assert devices(both, turned) == [(0, 0, "rank"), (1, 1, "rank")]


def test_another_rank_contradicts_from_more_than_a_hundredth_of_the_shorter_step() -> None:
    base = replace(result(), ranks=(of(0, 0, 10, 10), of(1, 1, 10, 10)))
    for new_us, verdict in ((10_100, "no_change"), (10_101, "undecided"), (9_900, "undecided")):
        other = rank(lengths_ns=(new_us * 1_000,) * 2, rank=1, device=1, ledger=None)
        assert compare(base, replace(base, ranks=(base.ranks[0], other))).verdict == verdict
    slower, pairs = Judged("regression", (), ""), pair_ranks(base, replace(base, ranks=(other,)), None, None)
    assert judge_pairs(slower, (pairs[0], *pairs)) == slower
    judged = compare(base, replace(base, ranks=(base.ranks[0], of(1, 1, 13, 13))), gate=Asked(0.03))
    assert "pair 2 of 2 ranks (GPU 1) differs by +3.00 ms, +30 %" in judged.because[0]
    assert judged.gate is not None
    assert judged.gate.state != "passed"


def test_a_window_is_told_without_steps_and_a_gpu_that_is_chosen_is_compared() -> None:
    window = result(rank(row("compute.gemm", 900), source="none"))
    found = compare(window, result(rank(row("compute.gemm", 5, 10, 3))))
    assert (found.base.steps.count, isinstance(found.base.steps.mean_ns, Missing)) == (0, True)
    steps = found.new.steps
    assert (steps.count, steps.mean_ns, steps.median_ns) == (3, 6, 5)
    assert (steps.min_ns, steps.max_ns) == (3, 10)
    two = replace(result(), ranks=(of(0, 0, 10, 10), of(1, 1, 20, 20)))
    pairs = pair_ranks(two, two, 1, None)
    assert [(pair.base.device, pair.new.device, pair.by) for pair in pairs] == [(1, 0, "chosen")]
    assert [one.new.device for one in pair_ranks(two, two, None, 1)] == [1]
    with pytest.raises(EmptySelection, match=r"new has no GPU 7; it has 0, 1. Give --new-gpu 0"):
        pair_ranks(two, two, 0, 7)
