"""The trend of one metric as a figure."""

import textwrap
from io import BytesIO
from itertools import pairwise
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.content.blocks import Hue
from reports.content.trend import Trend, Unit, group_words, left_out_words, step_words, unit_of
from reports.write.figures.canvas import NO_DATE, FigureForm, own_style
from reports.write.palette import HUES, SOFT
from traces.spelling import printable

_BLUE, _VERMILION, _GREY = HUES[Hue.COMPUTE].light, HUES[Hue.COMMUNICATION].light, SOFT

_INCHES: Final = (9.0, 5.0)
_DOTS_PER_INCH: Final = 120
_TICKS: Final = 9
_LINE: Final = 110


def draw_trend(trend: Trend, form: FigureForm) -> bytes:
    with own_style():
        figure = Figure(figsize=_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
        _draw(figure.add_subplot(), trend, unit_of(trend.metric))
        left_out = "; ".join(left_out_words(trend.left_out))
        caption = textwrap.wrap(
            f"Results of {group_words(trend.alike)}. {f'Left out: {left_out}.' if left_out else ''}", _LINE
        )
        figure.supxlabel("\n".join(caption), fontsize=8, color=_GREY, x=0.01, ha="left")
        file = BytesIO()
        figure.savefig(file, format=form, metadata=NO_DATE[form])
    return file.getvalue()


def _draw(axes: Axes, trend: Trend, unit: Unit) -> None:
    values = [float("nan") if p.value is None else p.value * unit.factor for p in trend.points]
    axes.plot(values, color=_BLUE, marker="o", markersize=5, linewidth=0.8, label="result")
    starts = [0, *(change.index for change in trend.changes), len(values)]
    means = [change.before_mean for change in trend.changes[:1]]
    means += [change.after_mean for change in trend.changes]
    for (start, end), mean in zip(pairwise(starts), means, strict=False):
        label = "mean between changes" if start == 0 else None
        span = [start - 0.4, end - 0.6]
        axes.plot(span, [mean * unit.factor] * 2, color=_VERMILION, linewidth=2.5, label=label)
    axes.margins(x=0.03, y=0.12)
    for place, change in enumerate(trend.changes):
        axes.axvline(change.index - 0.5, color=_VERMILION, linewidth=1.2, linestyle="--")
        axes.annotate(
            step_words(change, unit),
            (change.index - 0.5, 1.0),
            xytext=(0, 2 + 11 * (place % 2)),  # every second one higher, so that neighbours do not touch
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            color=_VERMILION,
            fontsize=9,
            fontweight="bold",
        )
    axes.set_title(trend.metric, loc="left", fontsize=12, pad=34)
    axes.set_ylabel(unit.word)
    axes.set_xlabel("result: number, day it was added, tag")
    _mark_results(axes, trend)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    if trend.changes:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.08), ncols=2, frameon=False, fontsize=8)


def _mark_results(axes: Axes, trend: Trend) -> None:
    count = len(trend.points)
    every = -(-count // _TICKS)
    places = list(range(0, count, every))
    points = [trend.points[place] for place in places]
    texts = [f"{p.id}\n{p.added_at[:10]}\n{printable(p.tag, 12)}".rstrip() for p in points]
    axes.set_xticks(places, texts, fontsize=8)
