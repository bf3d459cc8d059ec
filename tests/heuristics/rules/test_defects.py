"""One defect is told once: rules, findings and steps of the workflow know who tells the same."""

from __future__ import annotations

import ast
from pathlib import Path

import heuristics.findings
from heuristics.rules.defects import SAME, told_by
from heuristics.rules.rules import rules
from heuristics.workflow.walk import RULES as WORKFLOW

DETECTORS = Path(heuristics.findings.__path__[0])


def finding_ids() -> set[str]:
    """Every id of a finding that stands in the detectors' code; one that is put together ends in a dash."""
    return {
        node.value
        for path in DETECTORS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("CFG-")
    }


def test_every_id_of_the_table_exists() -> None:
    known = {one.id for one in rules().values()} | {one.id for one in WORKFLOW} | finding_ids()
    starts = tuple(one for one in known if one.endswith("-"))
    named = {*SAME, *(one for several in SAME.values() for one in several)}
    assert {one for one in named if one not in known and not one.startswith(starts)} == set()


def test_the_first_of_the_others_that_is_there_tells_it() -> None:
    gpu = "CFG-dispatcher-gpu"
    assert told_by("flex-backend-inert", ["CFG-flex-type"]) == "CFG-flex-type"
    assert told_by(gpu, ["hybridep-gpu", "deepep-gpu"]) == "deepep-gpu"
    assert told_by("ep-overlap-torch", ["ep-overlap-torch"]) == "ep-overlap-torch"
    assert told_by(gpu, ["ep-overlap-torch"]) == ""
    assert told_by("not-there", ["other"]) == ""
