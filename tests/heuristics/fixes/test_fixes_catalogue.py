"""The whole catalogue at once, and what its tables may say."""

from __future__ import annotations

import pytest

from heuristics.fixes import catalogue
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from tests.read_back.source import finding_ids
from traces.sections.tables import WallId
from traces.toml_tables import WrongRow

LISTED = {
    "memory": ("MEM-2", "MEM-4", "MEM-6", "MEM-8"),
    "communication": ("COM-2", "COM-1", "COM-4", "COM-5", "COM-6"),
    "host_overhead": ("HST-3", "HST-2", "HST-5", "HST-1"),
    "compute": ("CMP-1", "CMP-2", "CMP-3", "CMP-5"),
}
"""Profile table of NVIDIA's MoE optimization workflow, by wall."""
BEFORE_THE_LIST_ENDS = {"MEM-1", "MEM-18"}
"""At no cost, so tried before the sizes of a run are changed."""


@pytest.mark.parametrize("wall", WALL_ORDER)
def test_what_nvidias_table_names_comes_first_in_its_order(wall: WallId) -> None:
    order = [number for number in WALL_ORDER[wall] if number not in BEFORE_THE_LIST_ENDS]
    assert tuple(order[: len(LISTED[wall])]) == LISTED[wall]


def test_fixes_and_findings_that_a_row_names_exist() -> None:
    for fix in CATALOGUE.values():
        assert {*fix.excludes, fix.same_as or fix.id} <= {*CATALOGUE}
        assert {*fix.waits_for} <= finding_ids()


ROW = {
    "title": "Keep less", "versions": "every release", "verify": "less is kept", "sources": ["a guide"],
    "change": {"set": {"moe_paged_stash": True}},
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "named"), [
    *(({"titel": "Keep less"}, "titel"), ({"wins": "recompute"}, r"\$\.wins")),
    ({"change": {"set": {"moe_paged_stahs": True}}}, "moe_paged_stahs: no line sets it"),
    ({"change": "memory.nothing_such"}, "nothing_such"), ({"advice": ["nothing_such"]}, "nothing_such"),
    ({"advice": [{"text": "it holds", "holds": "active.nothing"}]}, "active.nothing is no question"),
    *(({"advice": [{"text": "it holds", "hold": "active.moe"}]}, "hold"), ({"like": "MEM-98"}, "MEM-98")),
])  # fmt: skip
def test_what_is_wrong_with_a_row_is_said_with_its_file_and_its_fix(
    wrong: dict[str, object], named: str
) -> None:
    with pytest.raises(WrongRow, match=rf"heuristics/fixes/memory.toml, MEM-99: .*{named}"):
        catalogue._fix("memory", "MEM-99", {"MEM-99": {**ROW, **wrong}})
