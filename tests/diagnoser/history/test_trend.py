"""The trend of a metric, as text and as a figure."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from heuristics.comparison.difference.change_points import ChangePoint, change_points
from reports.content.blocks import Drawing, Items, Page, View
from reports.content.trend import LeftOut, Point, Trend, metrics_page, shown, step_words, trend_page, unit_of
from reports.write.figures.trend import draw_trend
from reports.write.text import write_text
from tests.places import ROOT


def trend(values: list[float | None], metric: str = "step_ns", tag: str = "") -> Trend:
    points = tuple(Point(n + 1, f"2026-04-{n % 28 + 1:02}T03:00:00Z", tag, v) for n, v in enumerate(values))
    return Trend(metric, {"gpu": "NVIDIA H200", "ranks": 8}, points, change_points(values), ())


def slower(at: int = 6) -> Trend:
    return trend([40e6 if n < at else 44e6 for n in range(12)])


def written(page: Page) -> str:
    return write_text(page, View())


def words_of(page: Page) -> str:
    return " ".join(written(page).split())


def test_a_change_is_said_with_its_size_and_its_first_result() -> None:
    said = words_of(trend_page(slower()))
    assert "CHANGED +10.0 % from result 7 (2026-04-07) on: mean 40.0 ms -> 44.0 ms" in said
    assert "Newest 44.0 ms in result 12 (2026-04-12)" in said


def test_the_chart_has_a_point_a_result_and_a_bar_before_the_change() -> None:
    chart = [line for line in written(trend_page(slower())).splitlines() if " |" in line]
    assert chart[0].startswith("  44.0 | ")
    assert chart[-1].startswith("  40.0 | ")
    assert "".join(chart).count("o") == 12
    assert all(line.count(":") == 1 for line in chart)
    assert chart[0].index("o") > chart[0].index(":") > chart[-1].rindex("o")


@pytest.mark.parametrize("count", [8, 30, 66, 71, 72, 500])
def test_the_chart_is_ascii_and_the_text_80_columns_wide_at_most(count: int) -> None:
    found = trend([1e12 + n * 1e10 for n in range(count)], tag="ünïcode\x1b[31m" * 9)
    (chart,) = [block for block in trend_page(found).blocks if isinstance(block, Drawing)]
    assert "".join(chart.lines).isascii()
    text = written(trend_page(found))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_gaps_are_named_and_not_drawn_as_zero() -> None:
    page = trend_page(trend([40e6, None, 41e6, None] * 4))
    assert "8 of 16 results do not have it: 2, 4" in words_of(page)
    (chart,) = [block for block in page.blocks if isinstance(block, Drawing)]
    assert "".join(chart.lines).count("o") == 8
    assert chart.lines[11].startswith("40.0 |")


def test_few_results_say_that_they_cannot_show_a_change() -> None:
    page = trend_page(trend([1e6, None, 3e6]))
    assert "TOO FEW RESULTS 2 results; a change beyond chance takes 8" in words_of(page)
    assert "Results 1.00 ms in 1, 3.00 ms in 3" in words_of(page)
    assert not [block for block in page.blocks if isinstance(block, Drawing)]


def test_of_many_changes_the_last_eight_are_listed_and_the_newest_comes_first() -> None:
    changes = tuple(ChangePoint(n, n * 1e6, (n + 1) * 1e6) for n in range(1, 11))
    page = trend_page(replace(trend([n * 1e6 for n in range(12)]), changes=changes))
    (listed,) = [block for block in page.blocks if isinstance(block, Items)]
    assert [len(listed.items), listed.items[-1]] == [9, ("and 2 before them",)]
    assert "CHANGED +10.0 % from result 11 (" in words_of(page)


def test_a_metric_that_no_result_of_the_group_has_is_said_to_be_missing() -> None:
    said = words_of(trend_page(trend([None, None])))
    assert "TOO FEW RESULTS 0 results" in said
    assert "2 of 2 results do not have it" in said


def test_what_is_left_out_is_counted_with_its_reason() -> None:
    left = (LeftOut(3, ("gpu",), 9), LeftOut(1, ("num_layers", "hidden_size"), 4))
    said = words_of(trend_page(replace(slower(), left_out=left)))
    assert "Left out 3 results with another GPU: --like 9" in said
    assert "Left out 1 result with another layers, hidden size: --like 4" in said


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("step_ns", 41_942_702, "41.9 ms"),
        ("ledger.exposed_comm.ep_dispatch", 9_660_727, "9.66 ms per step"),
        ("budget_frac.exposed_comm", 0.4958, "49.6 %"),
        ("walls.communication.cost_frac", 0.0, "0 %"),
        ("memory.peak_bytes", 64e9, "64.0 GB"),
        ("throughput.tokens_per_s_per_gpu", 12345.6, "12,300 tokens/s per GPU"),
        ("throughput.model_tflops_per_gpu", 512.34, "512 TFLOP/s per GPU"),
    ],
)
def test_a_metric_is_shown_in_its_unit_with_three_digits(metric: str, value: float, words: str) -> None:
    assert shown(value, unit_of(metric)) == words


def test_a_share_moves_by_points_and_a_time_by_percent() -> None:
    assert step_words(ChangePoint(5, 0.25, 0.30), unit_of("budget_frac.idle")) == "+5.00 points"
    assert step_words(ChangePoint(5, 50e6, 40e6), unit_of("step_ns")) == "-20.0 %"
    assert step_words(ChangePoint(5, 0.0, 40e6), unit_of("step_ns")) == "from zero"


def test_metrics_are_listed_with_their_units() -> None:
    lines = written(metrics_page(["step_ns", "moe.tax_frac"])).splitlines()
    assert [line.split() for line in lines[-2:]] == [["step_ns", "ms"], ["moe.tax_frac", "%"]]
    assert "moe-diag history add RESULT.json" in written(metrics_page([]))


def test_the_figure_has_the_same_bytes_in_another_process() -> None:
    program = (
        "import sys; from tests.diagnoser.history.test_trend import draw_trend, slower; "
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
