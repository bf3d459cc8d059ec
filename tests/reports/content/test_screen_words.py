"""What the first screen prints is explained: its headlines, the bar's parts, titles and states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from diagnoser import analyze
from diagnoser.demo import RECORDINGS, unpack
from heuristics.result.configured import Incident
from reports.content.analysis import page
from reports.content.blocks import Bar, Block, Detail, Headline, Part, Plan, Sentence, Table, View
from reports.content.explain.page import explain_page
from reports.content.names import PIECES, plain
from reports.write.text import write_text
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


def test_a_long_page_begins_with_its_contents_and_ends_in_the_plan(tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    shown = page(analyze(tmp_path / "run.sqlite").result, Detail.FULL)
    contents, *_ = shown.blocks
    assert isinstance(contents, Sentence)
    assert isinstance(shown.blocks[-1], Part)
    titles = [block.title for block in shown.blocks if isinstance(block, Part)]
    assert plain(contents.said) == "; ".join(("The first screen", *titles))
    assert titles[-1] == "The whole plan"


def test_keys_stand_on_a_first_screen_too(tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    first = page(analyze(tmp_path / "run.sqlite").result, Detail.FIRST)
    keys = set(re.findall(r"\[([a-z_0-9.]+)\]", write_text(first, View(120, 100, keys=True))))
    assert {"ep_a2a", "comm.ep_combine"} <= keys
    for key in keys:
        explain_page(key)


@pytest.mark.parametrize(
    ("fix", "state", "above"), [("COM-2", "met", False), ("MEM-1", "met", False), ("MEM-1", "seen", True)]
)
def test_a_known_trouble_stands_above_the_plan_where_the_log_shows_it(
    fix: str, state: Any, above: bool, tmp_path: Path
) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    trouble = Incident("X#1", state, "slow", "It is slow.", "Change it.", fix, {}, (), (), (), (), "a thread")
    found = replace(analyze(tmp_path / "run.sqlite").result, incidents=(trouble,))
    text = write_text(page(found, Detail.FIRST), View(100, 100))
    assert (text.index("X#1") < text.index("DO THIS")) is above
