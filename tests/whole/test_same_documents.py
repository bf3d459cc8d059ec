"""The comparison of documents from before a change with those of now finds what differs, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agreement.same_documents import Difference, compare_folders, differences


def document(missing: dict[str, tuple[str, str]], **values: Any) -> dict[str, Any]:
    gaps = [{"path": path, "reason": why, "cure": cure} for path, (why, cure) in missing.items()]
    return {"schema_version": "1.0", "missing": gaps, **values}


def test_values_keys_and_types_are_compared_one_by_one() -> None:
    before = document({}, a=[{"b": 1}, {"b": 2}], gone=1)
    now = document({}, a=[{"b": 1}, {"b": 2.0}], new=1)
    assert sorted(differences(before, now)) == [
        Difference("key is gone", "gone"),
        Difference("key is new", "new", "", "1"),
        Difference("value differs", "a[].b", "2", "2.0"),
    ]


def test_a_reason_may_move_from_a_parent_to_the_value_itself() -> None:
    before = document({"a": ("why", "how")}, a={"b": None, "c": None})
    now = document({"a.b": ("why", "how"), "a.c": ("why", "how")}, a={"b": None, "c": None})
    assert list(differences(before, now)) == []


def test_a_reason_that_is_lost_or_another_is_found() -> None:
    before = document({"a": ("why", "how"), "b[*].c": ("once", "-")}, a=None, b=[{"c": None}])
    now = document({"b[0].c": ("twice", "-")}, a=None, b=[{"c": None}])
    assert list(differences(before, now)) == [
        Difference("reason is gone", "a", "why | how"),
        Difference("reason differs", "b[].c", "once | -", "twice | -"),
    ]


def test_a_note_that_is_of_no_null_must_stay() -> None:
    before = document({"traces[0].graph_launches": ("hidden", "record")}, traces=[])
    assert list(differences(before, document({}, traces=[]))) == [
        Difference("note is gone", "traces[].graph_launches", "hidden | record")
    ]


def test_fixes_are_compared_by_their_ids_whatever_their_order() -> None:
    one, other = {"id": "HST-1", "room": None}, {"id": "MEM-2", "room": 1}
    before = document({"fixes[0].room": ("why", "how")}, fixes=[one, other])
    now = document({"fixes[1].room": ("why", "how")}, fixes=[other, one])
    assert list(differences(before, now)) == [Difference("order differs", "fixes")]
    changed = document({}, fixes=[other, {**one, "room": 2}])
    assert Difference("value differs", "fixes[].room", "null", "2") in list(differences(before, changed))


def test_folders_are_compared_by_the_names_of_their_documents(tmp_path: Path) -> None:
    for name, value in (("before", 1), ("now", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(document({}, a=value)), encoding="utf-8")
        (folder / "notes.json").write_text("no document", encoding="utf-8")
    compared, found = compare_folders(tmp_path / "before", tmp_path / "now")
    assert (compared, dict(found)) == (1, {Difference("value differs", "a", "1", "2"): 1})
