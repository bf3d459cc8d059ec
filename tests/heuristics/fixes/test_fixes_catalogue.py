"""The whole catalogue at once, and what its tables may say."""

from __future__ import annotations

import re

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes import catalogue
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.fixes.fix import Fix
from heuristics.run.run import Run
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
EVERY = pytest.mark.parametrize("fix", CATALOGUE.values(), ids=lambda fix: fix.id)


PROSE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")


@pytest.mark.parametrize("training", [True, False, None])
@EVERY
def test_no_line_of_code_is_prose(fix: Fix, training: bool | None) -> None:
    """What stands behind a `#` is a comment of Python, which can be copied with its line."""
    if fix.pytorch is None:
        return
    run = Run(Observed(training=training, pageable_input=True, capability=(7, 0)))
    change = fix.pytorch.change(run)
    for line in (*change.pytorch, *change.launch):
        assert not PROSE.search(line.partition("#")[0]), line
        assert not line.endswith("."), line
    assert all(one.endswith(".") and one[0].isupper() for one in change.how)
    assert change.pytorch or change.launch or change.how


@pytest.mark.parametrize("wall", WALL_ORDER)
def test_what_nvidias_table_names_comes_first_in_its_order(wall: WallId) -> None:
    order = [number for number in WALL_ORDER[wall] if number not in BEFORE_THE_LIST_ENDS]
    assert tuple(order[: len(LISTED[wall])]) == LISTED[wall]


ROW = {
    "title": "Keep less",
    "versions": "every release",
    "verify": "less is kept",
    "sources": ["a guide"],
    "change": {"set": {"moe_paged_stash": True}},
}


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
