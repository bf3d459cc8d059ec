"""What words mean: every wall, fix and measure, and every key of a document that a reader meets."""

from __future__ import annotations

import time
from typing import get_args

import pytest

from diagnoser.cli import run
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.result.judged import ReasonId
from heuristics.run.run import WALL_IDS
from heuristics.walls import JUDGES
from reports.content.explain.page import explain_page
from reports.content.explain.walls import limit_at, limits_in
from reports.measures import glossary, measures, named
from tests.places import GOLDEN, Reviewed
from tests.read_back.plain_page import plain
from tests.read_back.source import finding_ids, words_of_the_code
from traces.errors import UsageError
from traces.sections.tables import WallId


def explain(topic: str = "") -> str:
    return plain(explain_page(topic))


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("topic", ["host_overhead", "HST-2", "launch_starved", "fill_frac"])
def test_the_explanation_reads_as_reviewed(
    topic: str, capsys: pytest.CaptureFixture[str], reviewed: Reviewed
) -> None:
    assert run(["explain", topic]) == 0
    text = capsys.readouterr().out
    assert text == reviewed(GOLDEN / f"explain_{topic.lower().replace('-', '_')}.txt", text)


def test_every_word_the_code_can_use_has_an_explanation() -> None:
    words = words_of_the_code()
    assert "launch_starved_frac" in words
    assert [word for word in words if not named(word)] == []


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_wall_gives_its_definition_its_limits_and_its_fixes_in_order(wall: WallId) -> None:
    text = words(explain(wall))
    judge = next(one for one in JUDGES if one.__name__.endswith(wall))
    assert words((judge.__doc__ or "").split("References:")[0]) in text
    for place in [*limits_in("heuristics.walls.price"), *limits_in(judge.__name__)]:
        assert words(limit_at(place).because) in text
    order = [text.index(f"- {number} ") for number in WALL_ORDER[wall]]
    assert order == sorted(order)


def test_an_unknown_topic_names_the_nearest_and_how_to_list() -> None:
    with pytest.raises(UsageError, match=r"'ocupancy_frac'.*occupancy_frac.*moe-diag explain to list"):
        explain("ocupancy_frac")
    with pytest.raises(UsageError, match="COM-11"):
        explain("COM-111")
    with pytest.raises(UsageError) as raised:
        explain("\x1b[31m\nxyzzyx")
    assert not {"\x1b", "\n"} & set(str(raised.value))


def test_without_a_topic_everything_is_listed() -> None:
    listed = words(explain()).replace(",", " ").split()
    assert {*WALL_IDS, *CATALOGUE, *measures()} <= set(listed)


def test_every_reason_of_a_confidence_is_in_the_glossary() -> None:
    assert set(get_args(ReasonId)) == set(glossary()["reason"])


def test_every_finding_of_the_detectors_is_in_the_glossary() -> None:
    assert finding_ids() == set(glossary()["finding"])


@pytest.mark.parametrize(
    "place", ["heuristics.walls.price.NOTHING", "os.path.SEP", "heuristics.none.NOWHERE"]
)
def test_what_is_no_limit_of_ours_is_not_loaded_or_shown(place: str) -> None:
    with pytest.raises(UsageError):
        explain(place)


def test_a_long_word_is_refused_in_a_time_that_grows_as_its_length() -> None:
    begun = time.process_time()
    with pytest.raises(UsageError, match="nothing is named") as refused:
        explain_page("expert_" * 100_000)
    assert time.process_time() - begun < 5.0  # 30 s where each measure's title has the word cut again
    assert len(str(refused.value)) < 400
