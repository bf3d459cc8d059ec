"""Limits of flex backends: the rules that forbid one are asked before anybody sets it."""

from __future__ import annotations

from heuristics.config.about import Given
from heuristics.guides.dispatcher import choose_dispatcher, refusals
from heuristics.run.run import Run


def refused(backend: str, **given: object) -> list[str]:
    return [one.reason for one in refusals(Run(given=Given(**given)), (backend,))]  # type: ignore[arg-type]


def test_one_rank_has_no_peer_to_dispatch_to_but_hybridep_takes_it_from_0_17_1() -> None:
    assert len(refused("deepep", ep=1, etp=1, core_version="0.18.0")) == 1
    assert len(refused("hybridep", ep=1, etp=1, core_version="0.17.0")) == 1
    assert refused("hybridep", ep=1, etp=1, core_version="0.17.1") == []


def test_padding_and_the_container_without_deepep_refuse_it() -> None:
    assert refused("deepep", routing="drop_pad") == ["DeepEP cannot pad expert inputs to capacity"]
    assert refused("deepep", routing="force_balance") == []
    assert refused("deepep", container="nvcr.io/nvidia/nemo:26.02") == [
        "DeepEP is not in the NeMo 26.02 container"
    ]


def test_a_group_wider_than_a_rack_leaves_alltoall_and_says_why() -> None:
    choice = choose_dispatcher(Run(given=Given(gpu="GB200", ep=96, etp=1)))
    assert choice.first == "alltoall"
    assert any("at most 72 ranks" in one.reason for one in choice.refused)
