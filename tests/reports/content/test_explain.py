"""What words mean: every wall, fix and measure, and every key of a document that a reader meets."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import diagnoser
from bench.simulate.recording import Recording
from diagnoser.cli import run
from heuristics.config.about import Given
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.result.judged import ReasonId
from heuristics.result.result import Result
from heuristics.run.run import WALL_IDS, Run
from heuristics.walls import JUDGES
from reports.content.explain.page import explain_page
from reports.content.explain.walls import limit_at, limits_in
from reports.measures import GROUPS, glossary, measures, named
from reports.result.codec import decode
from tests.configurations.check import cases
from tests.doubles.document import DISPATCH, exposed, graph_only
from tests.places import GOLDEN, ROOT, Reviewed
from tests.read_back.plain_page import plain
from tests.read_back.source import finding_ids, words_of_the_code
from traces.errors import UsageError
from traces.missing import known
from traces.sections.tables import WallId

Export = Callable[..., Path]


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


@pytest.mark.parametrize("make", [exposed, lambda: exposed(comm=DISPATCH), graph_only])
def test_every_piece_of_evidence_has_an_explanation(export: Export, make: Callable[[], Recording]) -> None:
    walls = diagnoser.analyze(export(make())).result.walls
    met = {one.measure for wall in walls for one in wall.evidence}
    assert "cost_frac" in met or make is graph_only
    assert {name for name in met if not named(name)} == set()


def test_every_limit_named_is_a_limit_and_every_group_is_used() -> None:
    for measure in measures().values():
        for place in measure.limits:
            assert limit_at(place).because
    assert {measure.group for measure in measures().values()} == set(GROUPS)


def test_a_measure_says_unit_meaning_and_computation() -> None:
    for measure in measures().values():
        assert measure.what.endswith(".")
        assert measure.how.endswith(".")
        if measure.name.endswith("_ns"):
            assert measure.unit.startswith("ns"), measure.name
        if measure.name.endswith("_frac"):
            assert measure.unit.startswith("fraction"), measure.name


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_wall_gives_its_definition_its_limits_and_its_fixes_in_order(wall: WallId) -> None:
    text = words(explain(wall))
    judge = next(one for one in JUDGES if one.__name__.endswith(wall))
    assert words((judge.__doc__ or "").split("References:")[0]) in text
    for place in [*limits_in("heuristics.walls.price"), *limits_in(judge.__name__)]:
        assert words(limit_at(place).because) in text
    order = [text.index(f"- {number} ") for number in WALL_ORDER[wall]]
    assert order == sorted(order)


@pytest.mark.parametrize("number", list(CATALOGUE))
def test_a_fix_gives_all_that_the_catalogue_knows(number: str) -> None:
    text, fix = words(explain(number)), CATALOGUE[number]
    assert words(f"{number}: {fix.doc}") in text
    told = [fix.title, fix.versions, fix.verify, *fix.side_effects, *fix.sources, *fix.excludes]
    told += [part for gain in fix.gains for part in (gain.text, gain.source)]
    told += [need.text for need in fix.preconditions(Run())]
    by_gpu = Given(gpu="GB200", ep=64, etp=1, stage="tuned", flex_package=True)
    of_table = number in ("COM-2", "MEM-5", "CMP-3", "MEM-4")
    knobs = fix.knobs(Run(given=by_gpu) if of_table else Run())
    told += [*knobs.megatron_lm, *knobs.megatron_bridge, *knobs.bridge_harness, *knobs.environment]
    assert [one for one in told if words(one) not in text] == []


@pytest.mark.parametrize("topic", ["com-2", "COM_2", " Com-2 "])
def test_spelling_does_not_matter(topic: str) -> None:
    assert explain(topic) == explain("COM-2")


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("Launch-Starved", "launch_starved"),
        ("ranks[0].absent_ns.launch_starved.sync", "sync"),
        ("windows_ns[0]", "windows_ns"),
        ("masked", "masked_ns"),
        ("launch_starved_frac", "launch_starved"),
        ("longest_ep_combine_ns", "ep_combine"),
    ],
)
def test_a_measure_is_found_as_it_stands_in_a_report(topic: str, name: str) -> None:
    assert explain(topic).startswith(f"{name}  measure")


def test_a_word_that_is_a_wall_and_a_measure_gets_both() -> None:
    text = explain("compute")
    assert text.startswith("compute  wall, measure, in ns")


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


def test_loading_it_loads_nothing_heavy() -> None:
    heavy = "[one for one in ('numpy', 'pandas') if one in sys.modules]"
    program = f"import sys, reports.content.explain.page; print({heavy})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_imported_limit_keeps_its_home() -> None:
    assert limits_in("heuristics.walls.verdict") == ["heuristics.walls.verdict:NEAR"]
    assert "heuristics.walls.price:WALL" in limits_in("heuristics.walls.price")


@pytest.mark.parametrize("title", ["read of token counts", "Read of Token-Counts", "garbage collection"])
def test_a_measure_is_found_by_its_name(title: str) -> None:
    assert "  measure" in explain(title).splitlines()[0]


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("CFG-18", "correction"),
        ("ENV-1", "correction"),
        ("CAP-1", "correction"),
        ("CFG-flex-type", "finding"),
        ("CFG-misspelled-3", "finding"),
        ("CFG-overwritten-delay-wgrad-compute", "finding"),
        ("flex-router-dtype", "rule of a release"),
        ("fit-offload-last", "rule of the workflow"),
        ("flex-skipped", "failure"),
        ("dropless", "guide on CUDA graphs"),
        ("full_recompute", "known change"),
        ("recompute-instead-of-full", "guide on recompute"),
        ("moe_grouped_gemm", "setting"),
        ("--moe-grouped-gemm", "setting"),
        ("model.moe_grouped_gemm=true", "setting"),
        ("heuristics.walls.price.WALL", "limit"),
        ("heuristics.walls.price:WALL", "limit"),
        ("requested_not_active", "word"),
    ],
)
def test_every_kind_of_id_is_explained(topic: str, meant: str) -> None:
    assert meant in explain(topic).splitlines()[0]


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


def printed_ids(result: Result) -> set[str]:
    """Every id that a result prints, whatever prints it."""
    fixes = (*result.fixes, *result.levers)
    found: set[str] = {one.id for one in result.walls} | {one.id for one in fixes}
    found |= {one.id for one in result.refused} | {one.id for one in result.config_findings}
    found |= {part for one in result.refused for part in one.unlocked_by.split() if part in CATALOGUE}
    found |= {one.outcome for one in result.walls} | {one.state for one in result.config_findings}
    found |= {seen.measure for one in result.walls for seen in one.evidence}
    found |= {kind for one in result.walls for kind in known(one.cost_by_kind_ns) or ()}
    verdict = result.verdict
    found |= {one for one in map(known, (verdict.wall, verdict.kind, verdict.bound)) if one}
    found |= {one for one in map(known, (verdict.confidence, verdict.largest_bucket)) if one}
    found |= {need.state for one in fixes for need in one.preconditions}
    found |= {one.answer for fix in fixes for one in fix.checked} | {result.framework}
    found |= {part for one in result.choices for part in (one.about, one.rule)}
    for step in result.workflow:
        found |= {step.id, step.phase, step.state, *([step.fix] if step.fix else ())}
    if (rules := known(result.rules)) is not None:
        found |= {one.id for one in rules.undecided}
        found |= {part for one in rules.broken for part in (one.id, one.level, *(s.knob for s in one.seen))}
    if (configuration := known(result.configuration)) is not None:
        found |= {one.knob for one in configuration.settings}
    return found


def unexplained(document: dict[str, Any]) -> list[str]:
    missed = []
    for name in sorted(printed_ids(decode(document, Result))):
        try:
            explain_page(name)
        except UsageError:
            missed.append(name)
    return missed


def test_every_id_of_a_judged_configuration_is_explained(tmp_path: Path) -> None:
    for path, options in cases(tmp_path).values():
        files = dict(zip(options[::2], map(Path, options[1::2]), strict=True))
        found = diagnoser.check_config(
            path,
            log=files.get("--log"),
            symptoms=files.get("--symptoms"),
            about={"gpu": "H100", "core_version": "0.16.1"},
            ask_megatron=False,
        )
        assert unexplained(found.to_dict()) == []


@pytest.mark.parametrize("make", [exposed, lambda: exposed(comm=DISPATCH), graph_only])
def test_every_id_of_a_recording_is_explained(export: Export, make: Callable[[], Recording]) -> None:
    assert unexplained(diagnoser.analyze(export(make())).to_dict()) == []


@pytest.mark.parametrize("name", ["nsysai_h100_2gpu_1s.sqlite", "second-simulator/poll_02.sqlite"])
def test_every_id_of_a_real_recording_is_explained(recordings: Path, name: str) -> None:
    assert unexplained(diagnoser.analyze(recordings / name).to_dict()) == []


def test_a_long_word_is_refused_in_a_time_that_grows_as_its_length() -> None:
    begun = time.process_time()
    with pytest.raises(UsageError, match="nothing is named") as refused:
        explain_page("expert_" * 100_000)
    assert time.process_time() - begun < 5.0  # 30 s where each measure's title has the word cut again
    assert len(str(refused.value)) < 400
