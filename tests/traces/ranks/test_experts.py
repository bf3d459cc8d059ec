"""Expert work by layer, by hand in round numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.recordings.ranks import US, Work, array, together
from traces.missing import Missing
from traces.names.kernels import COMM_KINDS
from traces.ranks.run import analyse_run
from traces.ranks.summary import ExpertWork, Operation, RankSummary
from traces.sections.run import ExpertGroups

LAYERS, STEPS = 2, 4
A2A = COMM_KINDS.index("ep_a2a")


def ranks_with(
    work_us: Callable[[int, int, int], int], *, count: int = 4, steps: int = STEPS
) -> list[RankSummary]:
    """Ranks that exchange tokens; `work_us` of rank, step and layer is what their experts take."""
    whole = [[Work(compute=100)] * (10 * steps) for _ in range(count)]
    cells = [(step, layer) for step in range(steps) for layer in range(LAYERS)]
    result = []
    for rank, one in enumerate(together(whole, per_step=10, operation=Operation.EXCHANGE)):
        table = ExpertWork(
            array([step for step, _ in cells]),
            array([layer for _, layer in cells]),
            array([work_us(rank, *cell) * US for cell in cells]),
        )
        rows = replace(one.instances, kind=one.instances.kind * 0 + A2A)
        result.append(replace(one, instances=rows, experts=table))
    return result


def experts(summaries: list[RankSummary]) -> ExpertGroups:
    found = analyse_run(summaries).experts
    assert isinstance(found, ExpertGroups)
    return found


def test_one_step_does_not_tell_another_rank_by_layer_from_another_by_step() -> None:
    found = experts(ranks_with(lambda rank, step, layer: 400 if layer == rank else 200, steps=1))
    assert isinstance(found.pattern, Missing)


def test_a_layer_that_one_rank_did_not_record_is_not_compared() -> None:
    ranks = ranks_with(lambda rank, step, layer: 200)
    first = ranks[0].experts
    ranks[0] = replace(ranks[0], experts=ExpertWork(first.step[::2], first.layer[::2], first.work_ns[::2]))
    assert [one.layer for one in experts(ranks).uneven_layers] == [0]


def test_ranks_without_layers_leave_it_unknown_and_without_experts_there_is_nothing() -> None:
    bare = together([[Work(compute=100)] * 20] * 4, per_step=10)
    assert isinstance(analyse_run(bare).experts, Missing)
    dense = [replace(one, fingerprint=replace(one.fingerprint, has_experts=False)) for one in bare]
    assert analyse_run(dense).experts is None
