"""What the first screen prints is explained: its headlines, the bar's parts, titles and states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnoser import analyze
from diagnoser.demo import RECORDINGS, unpack
from reports.content.analysis import page
from reports.content.blocks import Bar, Block, Detail, Headline, Plan, Table
from reports.content.explain.page import explain_page
from reports.content.names import PIECES
from tests.places import ROOT

LABEL = re.compile(r'(?:label, said(?:, tone)? = |return )"([A-Z][A-Z0-9 %-]{5,})"')


def words_of(blocks: tuple[Block, ...]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Headline(label=label):
                yield label
            case Bar(title=title, pieces=pieces):
                yield title
                yield from (piece.name for piece in pieces)
            case Plan(title=title, steps=steps):
                yield title.partition(",")[0]
                yield from (re.split(r" \d| up to| the same", step.saves)[0] for step in steps if step.saves)
            case Table(title=title):
                yield title


@pytest.mark.parametrize("scenario", [name for name in RECORDINGS if name != "ranks"])
def test_every_word_of_a_first_screen_is_explained(tmp_path: Path, scenario: str) -> None:
    unpack(tmp_path / "run.sqlite", scenario)
    found = [*words_of(page(analyze(tmp_path / "run.sqlite").result, Detail.FIRST).blocks)]
    assert found
    for word in found:
        explain_page(word)


def test_every_headline_and_part_of_the_bar_is_explained() -> None:
    code = (ROOT / "reports" / "content" / "analysis" / "headline.py").read_text(encoding="utf-8")
    labels = LABEL.findall(code)
    assert {"SLOWED BY", "NO BOTTLENECK OF 10 % OR MORE", "MAY BE SLOWED BY", "HANGS IN"} <= {*labels}
    for word in (*labels, *(name for _, name, _ in PIECES), "rest", "other time"):
        explain_page(word)
