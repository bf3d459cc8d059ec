"""What a GPU, a version or a layout refuses a dispatcher, and where the editions of the guide differ."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given, Guidance
from heuristics.config.hardware import FAMILIES
from heuristics.config.observed import Observed
from heuristics.guides.choices import choose_all
from heuristics.guides.dispatcher import choose_dispatcher, refusals
from heuristics.result.judged import Choice
from heuristics.run.run import Run
from tests.doubles.runs import run_by, run_of


@pytest.mark.parametrize(
    ("what", "refused"),
    [
        ({"gpu": "GB200"}, ["deepep"]),
        ({"gpu": "B300", "bridge_version": "0.3.1"}, ["deepep"]),
        ({"gpu": "B300", "bridge_version": "0.4.0"}, []),
        ({"gpu": "H100", "routing": "drop_pad"}, ["deepep"]),
        ({"gpu": "H100", "ep": 1, "tp": 1}, ["deepep"]),
        ({"gpu": "H100", "ep": 1, "tp": 2}, []),
        ({"gpu": "H100", "container": "nvcr.io/nvidia/nemo:26.02"}, ["deepep"]),
        ({"gpu": "H100", "core_version": "0.15.0"}, ["hybridep"]),
        ({"gpu": "GB200", "ep": 128}, ["deepep", "hybridep"]),
        ({}, []),
    ],
)
def test_hard_limits_refuse_a_backend_with_reason_and_source(
    what: dict[str, object], refused: list[str]
) -> None:
    found = refusals(run_by(what), ("alltoall", "deepep", "hybridep"))
    assert [refusal.what for refusal in found] == refused
    assert all(refusal.reason and refusal.source for refusal in found)


def test_old_gpus_take_no_flex_backend() -> None:
    volta = run_of(Observed(capability=(7, 0)), ep=64)
    assert [refusal.what for refusal in refusals(volta, ("deepep", "hybridep"))] == ["deepep", "hybridep"]
    assert choose_dispatcher(volta).candidates == ("alltoall",)


def test_the_nvlink_domain_comes_from_the_family_and_what_was_given_outweighs_it() -> None:
    assert {name: run_of(gpu=name).config.nvlink_domain for name in FAMILIES} == {
        **dict.fromkeys(("A100", "A800", "H20", "H100", "H800", "H200", "B200", "B300"), 8),
        **dict.fromkeys(("MI300X", "MI325X", "MI355X"), 8),
        **dict.fromkeys(("GB200", "GB300", "VR200"), 72),
    }
    assert run_of(gpu="GB200", nvlink_domain=36).config.nvlink_domain == 36
    assert run_of().config.nvlink_domain is None


@pytest.mark.parametrize(
    ("what", "spans"),
    [
        ({"gpu": "H100", "ep": 16}, True),
        ({"gpu": "H100", "ep": 8, "etp": 1}, False),
        ({"gpu": "H100", "ep": 8, "tp": 2}, True),
        ({"gpu": "H100", "ep": 8, "tp": 2, "etp": 1}, False),
        ({"gpu": "H100", "ep": 8}, None),
        ({"gpu": "GB200", "ep": 64, "etp": 1}, False),
        ({"ep": 64}, None),
    ],
)
def test_ep_spans_the_domain_where_its_ranks_are_more(what: dict[str, object], spans: bool | None) -> None:
    assert run_by(what).config.spans_domain is spans


def test_a_gpu_without_a_name_is_told_by_capability_where_that_is_enough() -> None:
    assert run_of(Observed(capability=(9, 0))).config.hardware_class == "hopper"
    assert run_of(Observed(capability=(10, 0))).config.hardware_class is None
    assert run_of(Observed(capability=(10, 0)), nvlink_domain=72).config.hardware_class == "nvl72"
    assert run_of(Observed(capability=(10, 0)), nvlink_domain=8).config.hardware_class == "blackwell_nvl8"
    assert run_of(Observed(gpu="L40S", capability=(8, 9))).config.hardware_class == "other"


def choices(guidance: Guidance, **about: object) -> dict[str, Choice]:
    given = Given(guidance=guidance, stage="tuned", **about)  # type: ignore[arg-type]
    return {one.about: one for one in choose_all(Run(Observed(moe=True), given))}


def test_w18_without_evidence_of_memory_recompute_is_no_question() -> None:
    assert "recompute" not in choices("seed", gpu="H100")
    dense = choose_all(Run(Observed(moe=False), Given(memory_tight=True)))
    assert "dispatcher" not in {one.about for one in dense}


@pytest.mark.parametrize(
    ("guidance", "answer", "other"),
    [
        ("seed", "deepep", "measure deepep against hybridep"),
        ("main-2026-08", "measure deepep against hybridep", "deepep"),
    ],
)
def test_where_the_editions_differ_both_are_told(guidance: Guidance, answer: str, other: str) -> None:
    found = choices(guidance, gpu="H100", ep=16, flex_package=True)["dispatcher"]
    assert (found.answer, found.other) == (answer, other)
