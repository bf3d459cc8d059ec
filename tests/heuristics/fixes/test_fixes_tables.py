"""The tables of fixes: what a row may say, and what is said where one is wrong."""

import re

import pytest

from heuristics.fixes import catalogue
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import Change, without_row
from heuristics.fixes.facts import FIX_FACTS
from heuristics.fixes.needs import shared_needs
from heuristics.guides.facts import GUIDE_FACTS
from heuristics.run.run import Run
from reports.content.explain.walls import limit_at
from reports.measures import glossary
from tests.doubles.fixes import complete
from tests.places import ROOT
from traces.names.kernels import compute_classes
from traces.settings.settings import Value
from traces.toml_tables import WrongRow

ROW = {
    "title": "Keep less",
    "versions": "every release",
    "verify": "less is kept",
    "sources": ["a guide"],
    "change": {"set": {"moe_paged_stash": True}},
}
FIXES = pytest.mark.parametrize("number", list(CATALOGUE))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"titel": "Keep less"}, "titel"),
        ({"wins": "recompute"}, r"\$\.wins"),
        ({"lever": "perhaps"}, "perhaps"),
        ({"change": {"set": {"moe_paged_stahs": True}}}, "moe_paged_stahs: no line sets it"),
        ({"change": {"sets": {}}}, "sets"),
        ({"change": "memory.nothing_such"}, "nothing_such"),
        ({"change": "nowhere.nothing"}, "nowhere"),
        ({"advice": ["nothing_such"]}, "nothing_such"),
        ({"advice": [{"text": "it holds", "holds": "active.nothing"}]}, "active.nothing is no question"),
        ({"advice": [{"text": "it holds", "hold": "active.moe"}]}, "hold"),
        ({"like": "MEM-98"}, "MEM-98"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_file_and_its_fix(
    wrong: dict[str, object], named: str
) -> None:
    with pytest.raises(WrongRow, match=rf"heuristics/fixes/memory.toml, MEM-99: .*{named}"):
        catalogue._fix("memory", "MEM-99", {"MEM-99": {**ROW, **wrong}})


@FIXES
def test_every_knob_that_a_fix_sets_has_a_row(number: str) -> None:
    on_gb200: dict[str, Value] = {
        "moe_token_dispatcher_type": "flex",
        "moe_flex_dispatcher_backend": "hybridep",
    }
    for run in (Run(), complete(), complete(on_gb200, gpu="GB200"), complete(gpu="B200", stage="tuned")):
        changes = (CATALOGUE[number].change(run), *CATALOGUE[number].arms(run).values())
        assert [without_row(change) for change in changes if without_row(change)] == []


def test_a_knob_without_a_row_would_be_found() -> None:
    assert without_row(Change({"bf16": True}, megatron_lm={"bf61": True})) == ("bf61",)


@FIXES
def test_the_numbers_of_a_fix_are_limits(number: str) -> None:
    for name in CATALOGUE[number].limits:
        assert limit_at(f"heuristics.fixes.{name.replace('.', ':')}").because


@FIXES
def test_a_fix_waits_for_findings_that_there_are(number: str) -> None:
    assert {*CATALOGUE[number].waits_for} <= {*glossary()["finding"]}


def test_a_larger_fp32_gemm_wins_by_any_compute() -> None:
    assert CATALOGUE["CMP-4"].wins == compute_classes()


def test_numbers_in_lines_of_code_are_the_limits() -> None:
    lines = {number: fix.pytorch.code for number, fix in CATALOGUE.items() if fix.pytorch}
    interval = CATALOGUE["HST-2"].change(Run()).set["train.manual_gc_interval"]
    workers = CATALOGUE["HST-10"].change(Run()).set["dataset.num_workers"]
    assert f"every {interval} steps" in lines["HST-2"][1]
    assert f"num_workers={workers}" in lines["HST-10"][0]


def test_every_need_is_asked_for_and_every_fact_of_fixes_named() -> None:
    folder = ROOT / "heuristics" / "fixes"
    tables = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.toml")}
    needs = tables.pop("needs")
    code = [path.read_text(encoding="utf-8") for path in (ROOT / "heuristics").rglob("*.py")]
    asking = "\n".join((*tables.values(), *code))
    assert [name for name in shared_needs() if f'"{name}"' not in asking] == []
    own = FIX_FACTS.keys() - GUIDE_FACTS.keys()
    assert [name for name in own if not re.search(rf"\b{name}\b", needs + "\n".join(tables.values()))] == []
