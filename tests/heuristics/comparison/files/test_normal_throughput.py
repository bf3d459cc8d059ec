"""What throughput is normal for a run: published rows, and what differs from them in effect."""

from __future__ import annotations

from math import log

import pytest

from heuristics.comparison.files import normal as rules
from heuristics.comparison.files.normal import held_against, normal_throughput
from heuristics.config.about import Given
from heuristics.result.normal import NormalThroughput
from heuristics.run.run import Run
from tests.doubles.result import double
from traces.missing import Missing
from traces.settings.read import configuration_of
from traces.settings.settings import Settings
from traces.sizes.model import model_size
from traces.sizes.references import Reference

PRESET = "python run_script.py -m {} -mr {} -g {} -c {} -ng {}"


def preset(model: str, recipe: str, gpu: str, code: str, gpus: int) -> Settings:
    return configuration_of(PRESET.format(model, recipe, gpu, code, gpus), "run.sh").settings


def normal(settings: Settings, gpu: str, precision: str) -> NormalThroughput:
    found = normal_throughput(Run(given=Given(gpu=gpu, precision=precision), settings=settings))
    assert isinstance(found, NormalThroughput)
    return found


@pytest.mark.parametrize(
    ("gpu", "part"), [("A100", "no run of Qwen3-30B-A3B on A100 is published"), ("", "the GPU is unknown")]
)
def test_where_no_run_is_published_it_says_so(gpu: str, part: str) -> None:
    settings = preset("qwen", "qwen3_30b_a3b", "h100", "bf16", 16)
    without = Settings({k: one for k, one in settings.by_knob.items() if k != "launcher.gpu"})
    found = normal_throughput(Run(given=Given(gpu=gpu or None), settings=without))
    assert isinstance(found, Missing)
    assert part in found.reason


def test_a_measured_run_is_held_against_the_range_and_so_is_its_replay() -> None:
    """By parts of what was published, which is the whole range."""
    cases: list[tuple[float, float | None, str, float | None, str | None]] = [
        (0.5, 0.75, "below", 2.0, "above"), (0.999, None, "below", None, None),
        (1.0, 0.0, "inside", 1.0, "inside"), (1.0, 1.0, "inside", None, None),
    ]  # fmt: skip
    for part, removable, standing, replayed, beyond in cases:
        found = normal(preset("qwen", "qwen3_30b_a3b", "h100", "bf16", 16), "H100", "bf16")
        assert found.tokens_low == found.tokens_high
        held = held_against(found, part * found.tokens_low, removable)
        assert isinstance(held, NormalThroughput)
        assert (held.standing, held.replayed_standing) == (standing, beyond)
        tokens = None if replayed is None else pytest.approx(replayed * found.tokens_low)
        assert held.replayed_tokens_high == tokens
        fast = held_against(found, found.tokens_high * 1.001, None)
        assert isinstance(fast, NormalThroughput)
        assert fast.standing == "above"
        assert held_against(found, None, 0.5) is found


def test_of_a_model_of_unknown_size_or_of_no_published_one_nothing_is_normal() -> None:
    for settings in (
        Settings({}),
        preset("qwen", "qwen3_30b_a3b", "h100", "bf16", 16).changed({"num_layers": 7}, "x"),
    ):
        assert isinstance(normal_throughput(Run(given=Given(gpu="H100"), settings=settings)), Missing)


def row(
    tokens: float, precision: str | None = None, routing: str = "natural", gpu: str = "H100", gpus: int = 0
) -> Reference:
    told = {"gpu": gpu, "gpus": gpus, "precision": precision, "routing": routing,
        "tokens_per_s_per_gpu": tokens}  # fmt: skip
    return double(Reference, model="Qwen3-30B-A3B", **told)


def test_rows_of_the_runs_precision_and_routing_go_before_others_of_its_gpu() -> None:
    cases: list[tuple[str | None, bool, list[int]]] = [
        ("fp8_blockwise", True, [2]), ("fp8", False, [1]), ("bf16", False, [3]),
        ("mxfp8", True, [0, 2, 5, 6]),  # none of its precision: of its routing, and four at most
        (None, False, [1, 3]),
    ]  # fmt: skip
    for precision, forced, chosen in cases:
        kinds = [(None, "balanced"), ("FP8", "natural"), ("FP8", "balanced"), ("BF16", "natural"),
            ("BF16", "natural")]  # fmt: skip
        rows = [row(place, one, how) for place, (one, how) in enumerate(kinds)]
        rows[4] = row(4, "BF16", "natural", "GB200")
        rows += [row(place, "BF16", "balanced") for place in (5, 6, 7)]
        settings = Settings({}).changed({"moe_router_force_load_balancing": forced}, "test")
        found = rules._chosen(rows, "H100", Run(given=Given(precision=precision), settings=settings))
        assert [one.tokens_per_s_per_gpu for one in found] == chosen
    assert rules._preset("Qwen3-30B-A3B", "H100", "BF16", 16)
    unknown, balanced = (rules._settings_of(row(1, None, how), Run()) for how in ("unknown", "balanced"))
    assert (len(unknown.by_knob), len(balanced.by_knob)) == (0, 1)
    told = row(1_000, "BF16", "balanced", gpus=16), row(1_000)
    assert [rules._published(rules._Brought(one)).partition(" on ")[2] for one in told] == [
        "16 H100, BF16, routing forced to balance: 1,000 tokens/s", "H100, precision unknown: 1,000 tokens/s"
    ]  # fmt: skip


def test_the_range_goes_from_the_slowest_published_run_brought_here_to_the_fastest() -> None:
    """1000 tokens/s at 0.5 to 2 times the step, 900 at 0.8 to 1.5 times."""
    settings = preset("qwen", "qwen3_30b_a3b", "h100", "bf16", 16)
    model = model_size(settings)
    assert not isinstance(model, Missing)
    rows = row(1_000, gpus=16), row(900, gpus=64)
    brought = [rules._Brought(rows[0], log(0.5), log(2)), rules._Brought(rows[1], log(0.8), log(1.5))]
    found = rules._range(Run(given=Given(gpu="H100", precision="bf16"), settings=settings), model, brought)
    assert (found.tokens_low, found.tokens_high) == pytest.approx((500, 2_000))
    tokens = 1024 * 4096 / 16  # a step of a GPU
    assert (found.step_low_ns, found.step_high_ns) == pytest.approx((tokens / 2e3 * 1e9, tokens / 5e2 * 1e9))
    for end in ("low", "high"):  # an H100 multiplies 989.5 TFLOP/s in BF16
        reached = getattr(found, f"mfu_{end}_frac") * 989.5
        assert reached == pytest.approx(getattr(found, f"tflops_{end}"))
    assert found.not_counted == ("routing balanced (published: natural)",)  # of the nearest: not its 16 GPUs
    fast = rules._range(Run(given=Given(gpu="H100", precision="bf16"), settings=settings), model,
        [rules._Brought(row(15_000, gpus=16), log(0.5), log(2))])  # fmt: skip
    assert fast.tflops_high == pytest.approx(399.58)  # as much as any run of that GPU and precision reached
    far = rules._Brought(row(900), log(0.2), log(5))  # changes that were measured elsewhere reach 3 times far
    assert (far.tokens_low, far.tokens_high) == pytest.approx((300, 2_700))
