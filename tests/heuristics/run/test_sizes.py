"""Sizes that a fix may set: each as it divides what it must, and the nearest that does not."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.run.run import Run
from heuristics.run.sizes import (
    batch_divides,
    deeper,
    doubled_micro_batch,
    even_layout,
    experts_divide,
    fewer_stages,
    present_layout,
    virtual_stages,
    wider_ep,
)
from tests.doubles.fixes import configured
from traces.settings.knobs import PP, STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.settings import Value

WORLD, EP, ETP, TP = (
    "world_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "tensor_model_parallel_size",
)  # fmt: skip
LAYERS, EXPERTS, MTP = "num_layers", "num_moe_experts", "mtp_num_layers"
MICRO, BATCH = "train.micro_batch_size", "train.global_batch_size"
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"


def of(*sizes: tuple[str, Value], **given: Any) -> Run:
    return Run(given=Given(**given), settings=configured(dict(sizes)).settings)


@pytest.mark.parametrize(
    ("batch", "micro", "times", "divides"),
    [(32, 2, 1, True), (48, 2, 1, False), (64, 2, 2, True), (None, 2, 1, None), (32, None, 1, None)],
)
def test_twice_the_micro_batch_over_eight_ranks_divides_the_batch_or_not(
    batch: int | None, micro: int | None, times: int, divides: bool | None
) -> None:
    told = [
        (name, size) for name, size in ((WORLD, 8), (TP, 1), (PP, 1), (MICRO, micro), (BATCH, batch)) if size
    ]
    found = of(*told, ("context_parallel_size", 1))
    assert (batch_divides(found) if times == 1 else batch_divides(found, times)) is divides
    assert doubled_micro_batch(found) == (2 * micro if micro else None)


@pytest.mark.parametrize(
    ("ep", "experts", "world", "divide"),
    [
        (8, 64, 32, True),
        (12, 64, 48, False),  # experts
        (8, 64, 24, False),  # ranks over EP and PP
        (8, None, 32, None),
        (8, None, 24, False),
        (8, 64, None, True),
    ],
)
def test_ep_divides_the_experts_and_with_pp_the_ranks(
    ep: int, experts: int | None, world: int | None, divide: bool | None
) -> None:
    told = [(name, size) for name, size in ((EXPERTS, experts), (WORLD, world), (PP, 2), (ETP, 1)) if size]
    assert experts_divide(of(*told), ep) is divide


@pytest.mark.parametrize(
    ("ep", "etp", "domain", "experts", "wider"),
    [
        (4, 1, 8, 64, 8), (4, 1, 7, 64, None), (4, 2, 16, 64, 8), (4, 2, 15, 64, None), (4, 1, 8, 12, None),
        (4, 1, None, 64, None),
    ],
)  # fmt: skip
def test_ep_is_doubled_within_the_nvlink_domain(
    ep: int, etp: int, domain: int | None, experts: int, wider: int | None
) -> None:
    found = of((EP, ep), (ETP, etp), (EXPERTS, experts), (PP, 1), nvlink_domain=domain)
    assert wider_ep(found) == wider


def test_what_a_trace_shows_of_experts_goes_before_their_spread() -> None:
    spread = of((EP, 4)).settings
    assert Run(settings=spread).tells("seems_moe")
    assert not Run(settings=spread, observed=Observed(moe=False)).tells("seems_moe")
    assert not Run().tells("seems_moe")
    assert wider_ep(Run(settings=spread, given=Given(nvlink_domain=8), observed=Observed(moe=False))) is None


@pytest.mark.parametrize(
    ("layers", "pp", "vpp", "half"),
    [
        (8, 4, 1, 2), (8, 4, 2, 2), (6, 4, 2, None), (7, 2, 1, 1), (8, 1, 1, None), (8, 3, 1, None),
        (None, 4, 1, 2),
    ],
)  # fmt: skip
def test_half_the_stages_divide_the_layers_over_virtual_ones(
    layers: int | None, pp: int, vpp: int, half: int | None
) -> None:
    told = [(name, size) for name, size in ((LAYERS, layers), (PP, pp), (VIRTUAL_STAGES, vpp)) if size]
    assert fewer_stages(of(*told)) == half
    assert fewer_stages(of(*told, (STAGE_LAYOUT, "Et|t|t|tL"))) is None


@pytest.mark.parametrize(
    ("layers", "pp", "middle"),
    [(24, 2, 4), (16, 2, 4), (8, 4, 2), (10, 4, None), (4, 4, None), (12, 2, 3), (None, 4, None)],
)
def test_of_the_divisors_of_a_stages_layers_the_lower_middle_one_is_tried(
    layers: int | None, pp: int, middle: int | None
) -> None:
    """Of 12 layers 2, 3, 4, 6 and 12; of 8 layers 2, 4 and 8; of 6 layers 2, 3 and 6."""
    assert virtual_stages(of(*[(LAYERS, layers)] * (layers is not None), (PP, pp))) == middle


@pytest.mark.parametrize(
    ("more", "layout"),
    [
        ([(LAYERS, 8)], "Ett|tt|tt|ttL"),
        ([(LAYERS, 8), (MTP, 1)], "Ett|tt|tt|ttmL"),
        ([(LAYERS, 7), (EMBEDDING, True)], "Et|tt|tt|ttL"),
        ([(LAYERS, 16), (VIRTUAL_STAGES, 2)], "Ett|tt|tt|tt|tt|tt|tt|ttL"),
        ([(LAYERS, 4)], None),  # one each
        ([(LAYERS, 9)], None),
        ([(LAYERS, 8), ("num_layers_in_first_pipeline_stage", 2)], None),
    ],
)
def test_stages_that_no_layout_names_have_equal_layers(
    more: list[tuple[str, Value]], layout: str | None
) -> None:
    assert present_layout(of((PP, 4), *more)) == layout
    assert present_layout(of((PP, 1), *more)) is None or (VIRTUAL_STAGES, 2) in more


@pytest.mark.parametrize(
    ("layers", "pp", "virtual", "layout"),
    [
        (6, 4, None, ("Et|tt|tt|tL", 1)),
        (6, 2, 2, ("Et|tt|tt|tL", 2)),
        (6, 2, None, ("Et|tt|tt|tL", 2)),  # eight parts: two a stage
        (30, 2, None, ("Ettt|tttt|tttt|tttt|tttt|tttt|tttt|tttL", 4)),  # and four at most
        (2, 4, None, ("E|t|t|L", 1)),
        (1, 4, None, None),
    ],
)
def test_an_even_layout_counts_embedding_and_loss_as_layers(
    layers: int, pp: int, virtual: int | None, layout: tuple[str, int] | None
) -> None:
    assert even_layout(of((LAYERS, layers), (PP, pp)), virtual) == layout
    assert even_layout(of((PP, pp)), virtual) is even_layout(of((LAYERS, layers)), virtual) is None


def test_more_stages_are_tried_from_twice_on_as_ranks_and_layers_allow() -> None:
    sizes = ((PP, 2), (TP, 1), ("context_parallel_size", 1), (WORLD, 8), (EP, 1), (ETP, 1))
    assert list(deeper(of((LAYERS, 8), *sizes))) == [{PP: 4}, {PP: 8}]
    assert list(deeper(of((LAYERS, 4), *sizes))) == [{PP: 4}]
    assert list(deeper(of((LAYERS, 8), *sizes[:-2], (EP, 2), (ETP, 1)))) == [{PP: 4}]
    assert list(deeper(of((LAYERS, 8), *sizes[:-2]))) == [{PP: 4}, {PP: 8}]  # EP and ETP nobody knows
    assert list(deeper(of(*sizes))) == [{PP: 4}]  # of layers nobody knows
    assert list(deeper(of((LAYERS, 8)))) == []
    named = list(deeper(of((LAYERS, 6), *sizes)))
    assert named[0] == {PP: 4, STAGE_LAYOUT: "Et|tt|tt|tL", VIRTUAL_STAGES: None}
    virtual = next(deeper(of((LAYERS, 14), *sizes, (VIRTUAL_STAGES, 2))))
    assert virtual == {PP: 4, STAGE_LAYOUT: "Et|tt|tt|tt|tt|tt|tt|tL", VIRTUAL_STAGES: 2}
    assert list(deeper(of((LAYERS, 6), *sizes, core_version="0.12.0"))) == []
    others = next(deeper(of((LAYERS, 8), *sizes, ("num_layers_in_last_pipeline_stage", 3))))
    assert others["num_layers_in_last_pipeline_stage"] is None


def test_what_kinds_of_a_wall_cost_is_at_most_all_of_it_and_unknown_where_it_was_not_measured() -> None:
    kinds = {"communication": {"a": 5, "b": 7}, "compute": {}}
    some = Run(cost_by_kind_ns=kinds, total_ns={"communication": 9, "compute": 4})  # type: ignore[arg-type]
    assert [some.cost_ns("communication", kind) for kind in ((), ("a",), ("a", "b"), ("c",))] == [9, 5, 9, 0]
    assert (some.cost_ns("compute", ("a",)), some.cost_ns("memory", ())) == (4, None)
    assert (some.seen_ns("compute", ("a",)), some.seen_ns("communication", ("b",))) == (None, 7)
    assert Run(cost_by_kind_ns=kinds).cost_ns("communication", ()) == 12  # type: ignore[arg-type]


def test_a_change_takes_away_what_was_given_of_the_same_setting_and_is_made_once() -> None:
    first = Run(given=Given(ep=4, tp=2), settings=configured({PP: 2}).settings)
    then = first.changed({EP: 8})
    assert (then.given.ep, then.given.tp, then.config.ep, first.config.ep) == (None, 2, 8, 4)
    assert first.changed({EP: 8}) is then is not first.changed({EP: 8.0})
    seen = Run(
        observed=Observed(gpu="H100", capability=(9, 0), memory_bytes=80, moe=True)
    ).as_written.observed
    assert (seen.gpu, seen.capability, seen.memory_bytes, seen.moe) == ("H100", (9, 0), 80, None)
