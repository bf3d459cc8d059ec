"""What a known change elsewhere explains here: how near it was measured, how far it goes, and which way."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import pytest

from heuristics.comparison.files.explain import EXACT, Made, SideName, Size, explain, made_changes, together
from heuristics.comparison.files.measured import known_changes
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.config.view import Config
from heuristics.result.compared_files import EffectiveChange
from traces.settings.settings import Value, settings

SIDES: tuple[SideName, SideName] = ("base", "new")


def config(gpu: str | None = None, family: str | None = None, **knobs: Value) -> Config:
    return Config(Given(gpu=gpu, family=family), Observed(), settings(knobs, "run.yaml"))


def change(what: str, base: Value, new: Value, effect: str = "may") -> EffectiveChange:
    said = ("configuration", False, "run.yaml:1", "run.yaml:1")
    return EffectiveChange(what, base, new, *said, effect)  # type: ignore[arg-type]


def made(id_: str, *, mirrored: bool = False, gpu: str | None = "GB200", family: str | None = "dsv3") -> Made:
    one = known_changes()[id_]
    sides = config(gpu, family), config(gpu, family)
    return Made(one, mirrored, *sides, tuple(change(knob, False, True) for knob in one.knobs[:1]))


def test_a_measurement_is_as_near_as_its_gpu_and_its_model() -> None:
    cases: list[tuple[str, str | None, str | None, str]] = [
        ("router_fusion", "GB200", "dsv3", "same"),
        # of the GPU or of the model, or of the generation where nobody knows the model
        ("router_fusion", "H100", "dsv3", "near"), ("router_fusion", "GB300", None, "near"),
        ("router_fusion", "GB200", None, "near"), ("delayed_wgrad", "H100", "dsv3", "near"),
        # of neither, or of another model
        ("router_fusion", "GB200", "qwen3_30b", "other"), ("router_fusion", "GB300", "qwen3_30b", "other"),
        ("router_fusion", "H100", None, "other"), ("delayed_wgrad", None, "dsv3", "other"),
    ]  # fmt: skip
    for id_, gpu, family, here in cases:
        assert made(id_, gpu=gpu, family=family).here == here


def test_the_nearest_measurements_alone_tell_the_range_and_it_goes_further_where_they_are_less_near() -> None:
    """MLP again: 1.196 and 1.21 times on H100, of one model; not known of which."""
    one = made("mlp_recompute", gpu="H100", family=None)
    ends = log(2200 / 1840), log(1.21)
    assert one.range == pytest.approx((log(1.196), ends[1]), abs=1e-3)
    low, high = one.range or (0, 0)
    assert one.wide == pytest.approx((low / 2 - EXACT.value, 2 * high + EXACT.value))
    same = made("router_fusion")
    (end, _) = same.range or (0.0, 0.0)
    assert same.wide == pytest.approx((1.5 * end - EXACT.value, end / 1.5 + EXACT.value))
    back = made("router_fusion", mirrored=True)
    assert back.range == pytest.approx((-end, -end))
    graphs = made("graphs", gpu="GB200", family="dsv3")  # of five measurements the one of this GPU and model
    assert graphs.range == pytest.approx((log(0.921),) * 2, abs=1e-3)
    memory = made("full_recompute", gpu="H100").memory
    assert made("full_recompute", gpu="H100", mirrored=True).memory == pytest.approx(1 / (memory or 1))
    # the nearest of its two measurements is of the step alone
    assert made("mla_up_proj_recompute").memory == pytest.approx(0.980, abs=1e-3)


def size(ratio: float, low: float, high: float) -> Size:
    return Size((log(ratio), log(low), log(high)))


def test_a_range_covers_the_size_or_points_its_way_or_against_it() -> None:
    cases: list[tuple[Size, str, tuple[str, ...], str]] = [
        (Size(), "open", ("step",), "low"),
        # measured as 0.981 times, 0.972 to 0.987 here and half a per cent beyond
        (size(0.98, 0.975, 0.985), "covers", ("step",), "high"),
        (size(0.99, 0.986, 0.994), "covers", ("step",), "high"),
        (size(0.9, 0.89, 0.91), "direction", ("step",), "low"),
        (size(1.02, 1.01, 1.03), "against", (), "low"),
        # where no size is certain what touches it covers it, whatever its way
        (size(1.001, 0.98, 1.02), "covers", ("step",), "high"),
    ]
    for observed, fit, explains, confidence in cases:
        (one,) = explain([made("router_fusion")], observed)
        assert (one.fit, one.explains, one.confidence) == (fit, explains, confidence)
        assert one.title == known_changes()["router_fusion"].title
        (back,) = explain([made("router_fusion", mirrored=True)], observed)
        assert back.title == known_changes()["router_fusion"].mirrored


def test_beside_another_change_or_measured_elsewhere_one_is_less_sure() -> None:
    fits = size(0.98, 0.975, 0.985)
    both = explain([made("router_fusion"), made("permute_fusion")], fits)
    assert [(one.id, one.confidence) for one in both] == [("router_fusion", "medium"),
        ("permute_fusion", "low")]  # fmt: skip
    nearer = {0.97: "router_fusion", 0.94: "permute_fusion", None: "permute_fusion"}  # 0.981 and 0.934 times
    for ratio, id_ in nearer.items():
        about = size(ratio, 0.9, 1.05) if ratio else Size()
        assert explain([made("router_fusion"), made("permute_fusion")], about)[0].id == id_
    near, other = (explain([made("router_fusion", gpu=gpu, family=None)], fits) for gpu in ("GB200", "H100"))
    assert (near[0].confidence, other[0].confidence) == ("medium", "low")
    low, high = near[0].step_low_frac, near[0].step_high_frac
    assert (low, high) == pytest.approx(
        [exp(end) - 1 for end in made("router_fusion", family=None).wide or ()]
    )


def test_memory_that_ran_out_is_explained_by_what_needs_more_of_it_before_the_step_is() -> None:
    """Full recompute takes 0.876 times the memory: without it the new side runs out."""
    sides = [made("full_recompute", gpu="H100", mirrored=mirrored) for mirrored in (True, False)]
    out = Size(ratio=(log(0.8), log(0.79), log(0.81)), moved={"out_of_memory": "new"})
    found = [explain([one], out)[0] for one in sides]
    assert [("out_of_memory" in one.explains, one.confidence) for one in found] == [(True, "medium"),
        (False, "low")]  # fmt: skip
    less = Size(moved={"out_of_memory": "base"})
    assert ["out_of_memory" in explain([one], less)[0].explains for one in sides] == [False, True]
    for side in SIDES:  # of norms nobody measured the memory
        norms = [
            made("layernorm_recompute", mirrored=mirrored) for mirrored in (side == "new", side == "base")
        ]
        found = [explain([one], Size(moved={"out_of_memory": side}))[0] for one in norms]
        assert ["out_of_memory" in one.explains for one in found] == [False, True]
    for moved, id_ in ((out.moved, "full_recompute"), ({}, "router_fusion")):
        beside = replace(size(0.98, 0.975, 0.985), moved=moved)
        assert explain([made("router_fusion"), sides[0]], beside)[0].id == id_


def test_a_change_is_made_where_each_side_holds_its_own_condition() -> None:
    off, on, untold = config(moe_router_fusion=False), config(moe_router_fusion=True), config()
    said = [change("moe_router_fusion", False, True)]
    more, less = (config(tensor_model_parallel_size=size) for size in (4, 2))
    sizes = [change("tensor_model_parallel_size", 2, 4)]
    cases = [(off, on, said, [("router_fusion", False)]), (on, off, said, [("router_fusion", True)]),
        (less, more, sizes, [("tensor_parallel", False)]), (more, less, sizes, [("tensor_parallel", True)]),
        *((one, one, said, []) for one in (off, on, untold)), (less, less, sizes, []),
        (more, untold, sizes, [])]  # fmt: skip
    for base, new, changes, found in cases:
        assert [(one.known.id, one.mirrored) for one in made_changes(base, new, changes)] == found
    assert made_changes(off, on, [change("moe_router_fusion", False, True, "none")]) == []
    assert made_changes(off, on, [change("moe_permute_fusion", False, True)]) == []


def test_the_gpu_and_the_model_of_either_side_tell_how_near_a_measurement_is() -> None:
    cases: list[tuple[tuple[str | None, str | None], tuple[str | None, str | None], str]] = [
        (("GB200", "dsv3"), (None, None), "same"),
        ((None, "dsv3"), ("GB200", None), "same"),
        (("H100", None), ("GB200", None), "near"),
        (("GB200", None), ("H100", None), "other"),  # the GPU of the new side goes before
        (("GB200", "dsv3"), ("GB200", "qwen3_30b"), "same"),
    ]
    for base, new, here in cases:
        one = Made(known_changes()["router_fusion"], False, config(*base), config(*new), ())
        assert one.here == here


def test_a_size_is_certain_where_its_interval_lies_off_zero() -> None:
    for low, high, certain in ((0.9, 1.0, False), (1.0, 1.1, False), (1.01, 1.1, True), (0.9, 0.99, True)):
        assert size((low + high) / 2, low, high).is_certain is certain
    assert not Size().is_certain


def test_what_changes_nothing_elsewhere_explains_no_step_and_no_peak_that_moved_the_other_way() -> None:
    nothing = made("expandable_segments", gpu="H100", family=None)
    assert nothing.range == (0.0, 0.0)
    (one,) = explain([nothing], size(1.001, 0.998, 1.004))
    assert (one.fit, one.explains) == ("covers", ())
    assert explain([nothing], size(1.1, 1.05, 1.2))[0].fit == "against"
    full, fusion = made("full_recompute", gpu="H100", mirrored=True), made("router_fusion")
    again = made("full_recompute", gpu="H100")
    for change_, memory in ((again, 1.1), (again, 1.0), (full, 0.9), (full, None), (fusion, 1.1)):
        assert "memory" not in explain([change_], Size(memory=memory))[0].explains  # fusion: not measured
    assert "memory" in explain([again], Size(memory=0.9))[0].explains


def test_changes_together_cover_a_size_that_touches_their_range() -> None:
    changes = [made("router_fusion"), made("permute_fusion")]
    low, high = (sum((one.wide or (0.0, 0.0))[end] for one in changes) for end in (0, 1))
    ends = ((low - 1, low), (low - 1, low - 0.01), (high, 1.0), (high + 0.01, 1.0))
    found = [together(changes, Size((0.0, *each))) for each in ends]
    assert [one and one.covers for one in found] == [True, False, True, False]
    assert [together(several, Size()) is None for several in (changes, changes[:1])] == [False, True]
    low, high = made("router_fusion").wide or (0.0, 0.0)
    ends = ((low - 1, low), (low - 1, low - 0.01), (high, high / 2), (high + 0.001, high / 2))
    fits = [explain(changes[:1], Size((low, *each)))[0].fit for each in ends]
    assert fits == ["covers", "direction", "covers", "direction"]
