"""The tables of fixes: what a row may say, and what is said where one is wrong."""

import pytest

from heuristics.fixes import catalogue
from traces.toml_tables import WrongRow

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
