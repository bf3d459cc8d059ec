"""Tickets: those that are shown are made again, and each answers what its reader asks by its text alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from bench.simulate.scenarios import SCENARIOS
from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from reports.content import blocks
from reports.content.analysis import page
from reports.content.blocks import Detail
from reports.content.names import name_of
from reports.result.codec import Document, decode
from reports.write.github import GitHub
from reports.write.jira import Jira
from reports.write.markup import Writer
from reports.write.text import write_text
from tests.configurations.check import BRIDGE, COMMUNICATION, ILLEGAL, SCRIPT
from tests.doubles.document import DISPATCH, HOSTILE, exposed, graph_only
from tests.hostile.planted import planted
from tests.places import ROOT, Reviewed
from tests.read_back import rendering
from tests.read_back.jira_grammar import read
from tests.read_back.markdown import is_ours_alone, open_lines, shown
from traces.missing import known
from traces.spelling import percent

TICKETS = ROOT / "docs" / "tickets"
BEFORE = Knobs(seed=1, step_count=10, layer_count=3, python_us=9.0, dispatcher="deepep", dispatch_us=150.0)
AFTER = Knobs(seed=2, step_count=10, layer_count=3, python_us=9.0, dispatcher="alltoall", dispatch_us=400.0)
RECORDED = "a100_llm_2_7B_nvtx.sqlite"
LINES = 40


def written(path: Path, knobs: Knobs) -> Path:
    write_export(path, record(run(knobs), View()), View().schema)
    return path


def analyzed(path: Path, config: Path | None = None) -> Document:
    told = diagnoser.analyze(path, config=config, ask_megatron=False).to_dict()
    return {**told, "command": f"moe-diag analyze {path.name}"}


@cache
def simulated(scenario: str, steps: int = 4) -> Document:
    """The diagnosis of a scenario of the demo."""
    with TemporaryDirectory() as folder:
        knobs = replace(SCENARIOS[scenario], step_count=steps)
        return analyzed(written(Path(folder) / f"simulated_{scenario}.sqlite", knobs))


@cache
def configured(config: str) -> Document:
    """A few steps with exposed dispatches, and a configuration."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, exposed(comm=DISPATCH), "3.25.0")
        return analyzed(path, saved(folder, config))


def saved(folder: str, config: str) -> Path:
    file = Path(folder) / ("run.sh" if config.startswith("#!") else "run.yaml")
    file.write_text(config, encoding="utf-8")
    return file


@cache
def unmeasurable() -> Document:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "graphs.sqlite"
        write_export(path, graph_only(), "3.25.0")
        return analyzed(path)


@cache
def of_ranks() -> Document:
    """Eight ranks that are alike."""
    told = simulated("communication")
    return {**told, "ranks": [{**told["ranks"][0], "rank": rank} for rank in range(8)]}


@cache
def regression() -> Document:
    with TemporaryDirectory() as folder:
        before = written(Path(folder) / "simulated_before.sqlite", BEFORE)
        after = written(Path(folder) / "simulated_after.sqlite", AFTER)
        told = diagnoser.compare(before, after).to_dict()
        return {**told, "command": f"moe-diag compare {before.name} {after.name}"}


@cache
def checked(config: str, symptoms: bool = False) -> Document:
    with TemporaryDirectory() as folder:
        told = Path(folder) / "symptoms.json"
        told.write_text(json.dumps(COMMUNICATION), encoding="utf-8")
        given = told if symptoms else None
        return diagnoser.check_config(saved(folder, config), symptoms=given, ask_megatron=False).to_dict()


@pytest.mark.parametrize("scenario", ["communication", "host_overhead"])
def test_a_simulated_ticket_that_is_shown_is_what_is_written(scenario: str, reviewed: Reviewed) -> None:
    text = rendering.text(simulated(scenario), "markdown")
    assert text == reviewed(TICKETS / f"simulated_{scenario}.md", text)


def test_the_regression_that_is_shown_is_what_is_written(reviewed: Reviewed) -> None:
    text = rendering.text(regression(), "markdown")
    assert text == reviewed(TICKETS / "simulated_regression.md", text)


def test_the_recorded_ticket_that_is_shown_is_what_is_written(recordings: Path, reviewed: Reviewed) -> None:
    text = rendering.text(analyzed(recordings / RECORDED), "markdown")
    assert text == reviewed(TICKETS / "recorded_inference.md", text)


def test_every_ticket_that_is_shown_is_named_with_whether_it_is_simulated() -> None:
    lines = (TICKETS / "README.md").read_text(encoding="utf-8").splitlines()
    for ticket in TICKETS.glob("*_*.md"):
        (line,) = [line for line in lines if f"]({ticket.name})" in line]
        assert ("simulated" in line.split("): ")[1]) == ticket.name.startswith("simulated_")
        assert len(ticket.read_text(encoding="utf-8").splitlines()) <= LINES


@dataclass(frozen=True)
class Reader:
    """Someone with ten seconds: sees what is open, each line as its words, and looks into no fold."""

    lines: tuple[str, ...]

    def finds(self, *words: str) -> bool:
        """Whether one line says all of it."""
        return any(all(" ".join(one.split()) in line for one in words) for line in self.lines)


def reader(text: str) -> Reader:
    return Reader(tuple(" ".join(shown(line).split()) for line in open_lines(text)))


CASES: dict[str, Callable[[], Document]] = {
    **{name: partial(simulated, name) for name in ("communication", "host_overhead")},
    **{name: partial(simulated, name, 2) for name in ("memory", "compute", "healthy")},
    "legal": partial(configured, SCRIPT),
    "illegal": partial(configured, ILLEGAL),
    "unmeasurable": unmeasurable,
    "ranks": of_ranks,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def told(case: str) -> Result:
    return decode(CASES[case](), Result)


@pytest.fixture
def reads(case: str) -> Reader:
    return reader(rendering.text(CASES[case](), "markdown"))


def test_the_cases_hold_each_wall_none_and_what_cannot_be_measured() -> None:
    found = [decode(make(), Result) for make in CASES.values()]
    walls = {known(one.verdict.wall) for one in found}
    assert walls == {"communication", "host_overhead", "memory", "compute", None}
    assert any(wall.outcome == "unmeasurable" for one in found for wall in one.walls)
    configurations = [one for result in found if (one := known(result.configuration))]
    assert {one.legal for one in configurations} == {True, False}


def test_what_is_slow_and_how_much(told: Result, reads: Reader) -> None:
    label = "SLOWED BY" if known(told.verdict.wall) else "NO"
    assert reads.lines[2].startswith(label)
    for wall in told.walls:
        share = known(wall.cost_frac)
        if share is not None:
            title = name_of(wall.id)
            assert reads.finds(f"| {title[:1].upper()}{title[1:]} |", percent(share))


def test_how_sure(told: Result, reads: Reader) -> None:
    if (level := known(told.verdict.confidence)) is not None:
        assert reads.finds(f"Confidence {level}")


def test_what_to_do_first_in_the_spelling_in_use(told: Result, reads: Reader) -> None:
    fixes = told.fixes or told.levers
    configuration = known(told.configuration)
    if configuration is not None and not configuration.legal:
        assert reads.finds("Correct the configuration")
    elif fixes:
        place = next(place for place, line in enumerate(reads.lines) if f"[{fixes[0].id}]" in line)
        assert reads.lines[place].startswith(fixes[0].title)
        below = " ".join(reads.lines[place + 1 : place + 4])
        ways = (
            *(fixes[0].knobs.megatron_lm, fixes[0].knobs.pytorch, fixes[0].knobs.environment),
            fixes[0].how,
        )
        assert any(ways)
        assert any(way and all(flag in below for flag in way) for way in ways)


def test_what_to_type_next(told: Result, reads: Reader) -> None:
    if (told.fixes or told.levers) and (found := enough_steps(told)).decides:
        assert reads.finds("moe-diag compare", told.traces[0].name)
    elif told.fixes or told.levers:
        assert reads.finds("moe-diag capture" if found.record else "--base-log LOG")
    assert not any("--full" in line for line in reads.lines)  # options mean nothing to who reads a ticket


def test_a_ticket_has_40_lines_and_jira_keeps_its_grammar(case: str) -> None:
    document = CASES[case]()
    text, jira = (rendering.text(document, form) for form in ("markdown", "jira"))
    assert len(text.splitlines()) <= LINES
    assert is_ours_alone(text)
    assert len(jira.splitlines()) <= LINES
    assert len(read(jira)) > 10


@pytest.mark.parametrize("form", ["markdown", "jira"])
def test_a_full_page_is_no_longer_than_a_ticket_takes(case: str, form: str) -> None:
    text = rendering.text(CASES[case](), form, Detail.FULL)
    assert len(text) <= (65_536 if form == "markdown" else 32_767)
    assert is_ours_alone(text) if form == "markdown" else read(text)


@pytest.mark.parametrize("detail", Detail)
def test_no_foreign_text_of_a_result_can_harm_a_page(case: str, detail: Detail) -> None:
    calm, hostile = (page(planted(decode(CASES[case](), Result), text), detail) for text in ("x", HOSTILE))
    for markup in (GitHub(), Jira()):
        one, other = (Writer(found, blocks.View(), markup).write() for found in (calm, hostile))
        assert len(one.splitlines()) == len(other.splitlines())
        assert not {"\u202e", "\x1b", "\r"} & {*other}
        assert is_ours_alone(other) if isinstance(markup, GitHub) else len(read(one)) == len(read(other))
    assert not {"\u202e", "\x1b", "\r"} & {*write_text(hostile, blocks.View())}


def test_the_regression_answers_as_well() -> None:
    told = regression()
    reads = reader(rendering.text(told, "markdown"))
    suspect = told["suspects"][0]
    assert told["verdict"] == "regression"
    assert reads.finds("SLOWER +30 %, +6.11 ms per step", "95 % interval")
    assert reads.finds("LIKELY CAUSE:", suspect["title"], "Explains +6.08 of +6.11", "Confidence medium")
    assert reads.finds("To be sure: ", suspect["next"])
    assert reads.finds("Limits:", "kernel set, dispatcher")
    assert reads.finds("moe-diag analyze simulated_after.sqlite")
    assert len(rendering.text(told, "markdown").splitlines()) <= LINES
    assert len(read(rendering.text(told, "jira"))) > 20


def configurations() -> Iterator[Document]:
    yield from (checked(SCRIPT), checked(BRIDGE), checked(ILLEGAL), checked(SCRIPT, symptoms=True))


def test_a_checked_configuration_keeps_the_markup() -> None:
    for told in configurations():
        for detail in Detail:
            text = rendering.text(told, "markdown", detail)
            assert is_ours_alone(text)
            assert detail is Detail.FULL or len(open_lines(text)) <= LINES
