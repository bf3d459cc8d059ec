"""What a GPU refuses a dispatcher, and by what it is told."""

from __future__ import annotations

from heuristics.config.hardware import FAMILIES
from heuristics.config.observed import Observed
from heuristics.guides.dispatcher import choose_dispatcher, refusals
from tests.doubles.runs import run_of


def test_old_gpus_take_no_flex_backend() -> None:
    volta = run_of(Observed(capability=(7, 0)), ep=64)
    assert all(refusals(volta, backend) for backend in ("deepep", "hybridep"))
    assert choose_dispatcher(volta).candidates == ("alltoall",)


def test_the_nvlink_domain_comes_from_the_family() -> None:
    assert {name: run_of(gpu=name).config.nvlink_domain for name in FAMILIES} == {
        **dict.fromkeys(("A100", "A800", "H20", "H100", "H800", "H200", "B200", "B300"), 8),
        **dict.fromkeys(("MI300X", "MI325X", "MI355X"), 8),
        **dict.fromkeys(("GB200", "GB300", "VR200"), 72),
    }


def test_a_gpu_without_a_name_is_told_by_capability_where_that_is_enough() -> None:
    assert run_of(Observed(capability=(9, 0))).config.hardware_class == "hopper"
    assert run_of(Observed(capability=(10, 0))).config.hardware_class is None
    assert run_of(Observed(capability=(10, 0)), nvlink_domain=72).config.hardware_class == "nvl72"
    assert run_of(Observed(capability=(10, 0)), nvlink_domain=8).config.hardware_class == "blackwell_nvl8"
    assert run_of(Observed(gpu="L40S", capability=(8, 9))).config.hardware_class == "other"
