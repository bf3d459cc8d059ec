"""The trend of a metric, as text and as a figure."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from heuristics.comparison.difference.change_points import ChangePoint, change_points
from reports.figures.trend import draw_trend
from reports.trend import LeftOut, Point, Trend, render_metrics, render_trend, shown, step_words, unit_of

ROOT = Path(__file__).resolve().parent.parent


def trend(values: list[float | None], metric: str = "step_ns", tag: str = "") -> Trend:
    points = tuple(Point(n + 1, f"2026-04-{n % 28 + 1:02}T03:00:00Z", tag, v) for n, v in enumerate(values))
    return Trend(metric, {"gpu": "NVIDIA H200", "ranks": 8}, points, change_points(values), ())


def slower(at: int = 6) -> Trend:
    return trend([40e6 if n < at else 44e6 for n in range(12)])


def test_a_change_is_told_with_its_size_and_its_first_result() -> None:
    text = render_trend(slower())
    assert "+10.0 % from result 7 (2026-04-07) on: 40.00 -> 44.00 ms in the mean" in text
    assert "Newest   44.00 ms in result 12 (2026-04-12)" in text


def test_the_chart_has_a_point_a_result_and_a_bar_before_the_change() -> None:
    chart = [line for line in render_trend(slower()).splitlines() if " |" in line]
    assert chart[0].startswith(" 44.00 | ")
    assert chart[-1].startswith(" 40.00 | ")
    assert "".join(chart).count("o") == 12
    assert all(line.count(":") == 1 for line in chart)
    assert chart[0].index("o") > chart[0].index(":") > chart[-1].rindex("o")


@pytest.mark.parametrize("count", [1, 2, 7, 30, 66, 71, 72, 500])
def test_text_is_ascii_and_80_columns_wide_at_most(count: int) -> None:
    text = render_trend(trend([1e12 + n * 1e10 for n in range(count)], tag="ünïcode\x1b[31m" * 9))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    chart = text.partition("Changes")[0]
    assert chart.isascii()


def test_gaps_are_named_and_not_drawn_as_zero() -> None:
    text = render_trend(trend([40e6, None, 41e6, None]))
    assert "Gaps     not told by 2 of 4: 2, 4" in text
    assert " 40.00 | " in text
    assert " 0" not in text.partition("+--")[0]


def test_few_results_say_that_they_cannot_show_a_change() -> None:
    text = render_trend(trend([1.0, 2.0, 3.0]))
    assert "none in 3 results beyond what chance would do; fewer than 8" in text


def test_of_many_changes_the_last_eight_are_told() -> None:
    changes = tuple(ChangePoint(n, n * 1e6, (n + 1) * 1e6) for n in range(1, 11))
    text = render_trend(replace(trend([n * 1e6 for n in range(12)]), changes=changes))
    assert text.count(" ms in the mean") == 8
    assert "from result 11 (" in text
    assert "and 2 before them" in text


def test_a_metric_that_no_result_of_the_group_tells_is_said_so() -> None:
    text = render_trend(trend([None, None]))
    assert "none in 0 results" in text
    assert "not told by 2 of 2" in text


def test_what_is_left_out_is_counted_with_its_reason() -> None:
    left = (LeftOut(3, ("gpu",), 9), LeftOut(1, ("num_layers", "hidden_size"), 4))
    text = render_trend(replace(slower(), left_out=left))
    assert "Left out 3 results with another GPU: --like 9" in text
    assert "Left out 1 result with another layers, hidden size: --like 4" in text


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("step_ns", 41_942_702, "41.94 ms"),
        ("ledger.exposed_comm.ep_dispatch", 9_660_727, "9.661 ms a step"),
        ("budget_frac.exposed_comm", 0.4958, "49.58 %"),
        ("walls.communication.cost_frac", 0.0, "0.000 %"),
        ("memory.peak_bytes", 2**36, "64.00 GiB"),
        ("throughput.tokens_per_s_per_gpu", 12345.6, "12,346 tokens/s per GPU"),
        ("throughput.model_tflops_per_gpu", 512.34, "512.3 TFLOP/s per GPU"),
    ],
)
def test_a_metric_is_shown_in_its_unit_with_four_digits(metric: str, value: float, words: str) -> None:
    unit = unit_of(metric)
    assert f"{shown(value, unit)} {unit.word}" == words


def test_a_share_moves_by_points_and_a_time_by_percent() -> None:
    assert step_words(ChangePoint(5, 0.25, 0.30), unit_of("budget_frac.idle")) == "+5.0 points"
    assert step_words(ChangePoint(5, 50e6, 40e6), unit_of("step_ns")) == "-20.0 %"
    assert step_words(ChangePoint(5, 0.0, 40e6), unit_of("step_ns")) == "from zero"


def test_metrics_are_listed_with_their_units() -> None:
    assert render_metrics(["step_ns", "moe.tax_frac"]) == "step_ns  (ms)\nmoe.tax_frac  (%)\n"
    assert "moe-diag history add" in render_metrics([])


def test_the_figure_has_the_same_bytes_in_another_process() -> None:
    program = (
        "import sys; from tests.test_trend import draw_trend, slower; "
        "sys.stdout.buffer.write(draw_trend(slower(), 'svg') + draw_trend(slower(), 'png'))"
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1", "PYTHONHASHSEED": "7"}
    line = [sys.executable, "-c", program]
    run = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert run.stdout == draw_trend(slower(), "svg") + draw_trend(slower(), "png")


def test_the_users_own_style_does_not_change_the_figure() -> None:
    import matplotlib

    plain = draw_trend(slower(), "svg")
    with matplotlib.rc_context({"lines.linewidth": 9, "axes.facecolor": "black", "svg.fonttype": "none"}):
        assert draw_trend(slower(), "svg") == plain
        assert matplotlib.rcParams["lines.linewidth"] == 9  # and is left as it was


def test_the_svg_stands_alone_and_holds_no_date() -> None:
    drawn = draw_trend(replace(slower(), left_out=(LeftOut(3, ("gpu",), 9),)), "svg").decode()
    ElementTree.fromstring(drawn)
    assert "<dc:date>" not in drawn
    assert "http" not in drawn.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


@pytest.mark.parametrize("count", [1, 9, 500])
def test_nothing_is_clipped_at_the_edge_of_the_figure(count: int) -> None:
    """The outermost pixels are all background."""
    import io

    import numpy as np
    from matplotlib.image import imread

    found = replace(
        trend(
            [1e9 + 1e8 * (n > count // 2) for n in range(count)],
            "ledger.idle.launch_starved.python",
            "w" * 40,
        ),
        left_out=tuple(LeftOut(9, ("gpu", "ranks", "num_layers", "hidden_size"), n) for n in range(4)),
    )
    pixels = imread(io.BytesIO(draw_trend(found, "png")))[..., :3]
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (edge == 1).all()
    assert (pixels < 1).any()


def test_a_tag_with_a_formula_or_an_escape_is_drawn_as_it_is() -> None:
    assert draw_trend(trend([1.0, 2.0], tag="$\\frac{$ <&>\x1b"), "svg").startswith(b"<?xml")
