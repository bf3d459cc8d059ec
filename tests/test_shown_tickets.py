"""Tickets: those that are shown are made again, and each answers what its reader asks by its text alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import diagnoser
from reports.comparison.jira import render_comparison_jira
from reports.comparison.markdown import render_comparison_markdown
from reports.config_sentences import first_mends
from reports.document import Document, with_command
from reports.jira import render_jira
from reports.markdown import render_markdown
from reports.sentences import is_cure
from reports.words import kind_words, percent, wall_words
from tests.check_doubles import ILLEGAL, SCRIPT
from tests.document_doubles import DISPATCH, exposed, graph_only
from tests.jira_grammar import read
from tests.test_markdown import open_lines, shown
from traces.simulate.export import write_export
from traces.simulate.knobs import Knobs
from traces.simulate.recorded import View, record
from traces.simulate.run import run
from traces.simulate.scenarios import SCENARIOS

TICKETS = Path(__file__).parent.parent / "docs" / "tickets"
BEFORE = Knobs(seed=1, step_count=10, layer_count=3, python_us=9.0, dispatcher="deepep", dispatch_us=150.0)
AFTER = Knobs(seed=2, step_count=10, layer_count=3, python_us=9.0, dispatcher="alltoall", dispatch_us=400.0)
RECORDED = "a100_llm_2_7B_nvtx.sqlite"


def written(path: Path, knobs: Knobs) -> Path:
    write_export(path, record(run(knobs), View()), View().schema)
    return path


def analyzed(path: Path, config: Path | None = None) -> Document:
    told = diagnoser.analyze(path, config=config, ask_megatron=False).to_dict()
    return with_command(told, f"moe-diag analyze {path.name}")


@cache
def simulated(scenario: str, steps: int = 4) -> Document:
    """The diagnosis of a scenario of the demo."""
    with TemporaryDirectory() as folder:
        knobs = replace(SCENARIOS[scenario].knobs, step_count=steps)
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
def nothing_measured() -> Document:
    """The same where not one wall could be measured."""
    told = copy.deepcopy(unmeasurable())
    for wall in told["walls"]:
        untold = {"cost_ns": None, "cost_frac": None, "missing": ["no clock"], "cure": "record clocks"}
        wall |= {"outcome": "unmeasurable", **untold}
    told["verdict"] |= {"wall": None, "confidence": None, "because": ["no wall could be measured", "x"]}
    return {**told, "fixes": [], "levers": [], "refused": []}


@cache
def of_ranks() -> Document:
    """Eight ranks that are alike."""
    told = copy.deepcopy(simulated("communication"))
    told["ranks"] = [{**told["ranks"][0], "rank": rank} for rank in range(8)]
    return told


@cache
def regression() -> Document:
    with TemporaryDirectory() as folder:
        before = written(Path(folder) / "simulated_before.sqlite", BEFORE)
        after = written(Path(folder) / "simulated_after.sqlite", AFTER)
        told = diagnoser.compare(before, after).to_dict()
        return with_command(told, f"moe-diag compare {before.name} {after.name}")


def is_shown(text: str, name: str, request: pytest.FixtureRequest) -> None:
    ticket = TICKETS / name
    if request.config.getoption("--update-golden"):
        ticket.write_text(text, encoding="utf-8")
    assert text == ticket.read_text(encoding="utf-8")


@pytest.mark.parametrize("scenario", ["communication", "host_overhead"])
def test_a_simulated_ticket_that_is_shown_is_what_is_written(
    scenario: str, request: pytest.FixtureRequest
) -> None:
    is_shown(render_markdown(simulated(scenario)), f"simulated_{scenario}.md", request)


def test_the_regression_that_is_shown_is_what_is_written(request: pytest.FixtureRequest) -> None:
    is_shown(render_comparison_markdown(regression()), "simulated_regression.md", request)


def test_the_recorded_ticket_that_is_shown_is_what_is_written(
    recordings: Path, request: pytest.FixtureRequest
) -> None:
    is_shown(render_markdown(analyzed(recordings / RECORDED)), "recorded_inference.md", request)


def test_every_ticket_that_is_shown_is_named_with_whether_it_is_simulated() -> None:
    lines = (TICKETS / "README.md").read_text(encoding="utf-8").splitlines()
    for ticket in TICKETS.glob("*_*.md"):
        (line,) = [line for line in lines if f"]({ticket.name})" in line]
        assert ("simulated" in line.split("): ")[1]) == ticket.name.startswith("simulated_")
        assert len(open_lines(ticket.read_text(encoding="utf-8"))) <= 60


@dataclass(frozen=True)
class Reader:
    """Someone with two minutes: sees what is open, each line as its words, and looks into no fold."""

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
    "nothing_measured": nothing_measured,
    "ranks": of_ranks,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def told(case: str) -> Document:
    return CASES[case]()


@cache
def read_once(case: str) -> Reader:
    return reader(render_markdown(CASES[case]()))


@pytest.fixture
def reads(case: str) -> Reader:
    return read_once(case)


def test_the_cases_hold_each_wall_none_and_what_cannot_be_measured() -> None:
    found = [make() for make in CASES.values()]
    walls = {one["verdict"]["wall"] for one in found}
    assert walls == {"communication", "host_overhead", "memory", "compute", None}
    assert any(all(wall["outcome"] == "unmeasurable" for wall in one["walls"]) for one in found)
    assert any(one["levers"] for one in found)
    assert {one["configuration"]["legal"] for one in found if one["configuration"]} == {True, False}


def test_which_wall(told: Document, reads: Reader) -> None:
    verdict = told["verdict"]
    if verdict["wall"] is None:
        assert reads.finds(verdict["because"][0])
    else:
        kind = kind_words(verdict["kind"]) if verdict["kind"] else ""
        assert reads.finds(wall_words(verdict["wall"]), kind, "Without it the run would be")


def test_how_sure(told: Document, reads: Reader) -> None:
    verdict = told["verdict"]
    for wall in told["walls"]:
        if wall["outcome"] == "unmeasurable":
            assert reads.finds("Not measurable:", wall_words(wall["id"]), wall["missing"][0][1:])
    if verdict["confidence"]:
        because = verdict["confidence_because"] or ["nothing speaks against it"]
        assert reads.finds(f"Confidence {verdict['confidence']}", *because)
    elif told["ranks"][0]["replay"]:
        error = told["ranks"][0]["replay"]["residual_free_error_frac"]
        assert reads.finds("Two checks of the replay", f"off by {percent(error)}")


def test_how_much_could_be_won(told: Document, reads: Reader) -> None:
    for wall in told["walls"]:
        if wall["cost_frac"] is not None:
            start = f"| {wall_words(wall['id'])} | {wall['outcome']} |"
            (row,) = [line for line in reads.lines if line.startswith(start)]
            assert row.split("|")[4].strip() == percent(wall["cost_frac"])
    for fix in told["fixes"][:3]:
        if fix["gain_frac"]:
            assert reads.finds(fix["title"], percent(fix["gain_frac"][1]), "of the step")


def test_what_to_change_first(told: Document, reads: Reader) -> None:
    plan = told["fixes"] or told["levers"]
    if told["configuration"] and not told["configuration"]["legal"]:
        places = [place for place, line in enumerate(reads.lines) if "Mend first" in line]
        assert reads.lines[places[0] + 1].startswith(next(iter(first_mends(told)))[:40])
        assert reads.lines.index("Next") + 1 == places[0]
    if not plan:
        assert reads.finds("no fix is planned") or reads.finds("No change is planned: ")
        return
    first = next(place for place, line in enumerate(reads.lines) if line.startswith(f"{plan[0]['id']} "))
    assert plan[0]["title"] in reads.lines[first]
    knobs = plan[0]["knobs"]
    below = reads.lines[first + 1 : first + 5]
    for key in ("megatron_lm", "megatron_bridge", "environment"):
        assert all(any(knob in line for line in below) for knob in knobs[key])


def test_what_forbids_the_obvious_alternative(told: Document, reads: Reader) -> None:
    refused, plan = told["refused"], told["fixes"] or told["levers"]
    assert sum("Refused: " in line for line in reads.lines) == min(3, len(refused))
    for one in refused:
        if plan and one["because"].startswith(f"not in one plan with {plan[0]['id']},"):
            assert reads.finds("Refused: ", one["id"], one["title"], one["because"])
            break
    for fix in plan[1:3]:
        for need in fix["preconditions"]:
            assert need["state"] != "unmet" or reads.finds("needs: ", need["text"])
    if not refused and not plan:
        assert reads.finds(told["verdict"]["because"][0])


def test_how_to_check_next_time(told: Document, reads: Reader) -> None:
    if plan := told["fixes"] or told["levers"]:
        assert reads.finds("check next time: ", plan[0]["verify"])
        assert reads.finds("Did it help?", f"moe-diag compare {told['traces'][0]['name']} AFTER")
    else:
        cures = [wall["cure"].rstrip(".") for wall in told["walls"] if is_cure(wall["cure"])]
        assert not cures or any(reads.finds("To judge ", cure) for cure in cures)


def test_how_long_a_step_is_and_how_it_is_made_again(told: Document, reads: Reader) -> None:
    steps = told["ranks"][0]["steps"]
    if steps["used"]:
        lengths = [f"{steps[f'{key}_ns'] / 1e6:,.3f}" for key in ("median", "min", "max")]
        assert reads.finds(str(len(steps["used"])), *lengths)
    assert reads.finds(told["command"])
    assert reads.finds(told["tool"]["version"], told["tool"]["guidance"])


def test_at_most_sixty_lines_are_open_and_jira_keeps_its_grammar(told: Document) -> None:
    assert len(open_lines(render_markdown(told))) <= 60
    assert len(read(render_jira(told))) > 30


def test_the_regression_answers_as_well() -> None:
    told = regression()
    reads = reader(render_comparison_markdown(told))
    suspect = told["suspects"][0]
    assert told["verdict"] == "regression"
    assert reads.finds("REGRESSION", f"{told['size']['delta_ns'] / 1e6:,.3f} ms longer", "95 % interval")
    assert reads.finds("Wall of each run alone: communication in both")
    assert reads.finds(suspect["title"], "Confidence medium", f"{suspect['explains_ns'] / 1e6:+,.3f} of")
    assert reads.finds("To be sure of 1: ", suspect["next"])
    assert reads.finds("No verdict on the dispatcher")
    assert reads.finds(told["command"])
    assert len(open_lines(render_comparison_markdown(told))) <= 60
    assert len(read(render_comparison_jira(told))) > 30
