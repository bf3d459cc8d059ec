"""The contract of a result: its keys stay, its schema is made of the types, and documents keep it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import Struct

import diagnoser
from heuristics.result.brief import Brief, BriefRun
from heuristics.result.compared import Compared
from heuristics.result.compared_files import ComparedFiles
from heuristics.result.layouts import Layouts
from heuristics.result.result import Merged, Result
from reports.result.codec import decode
from tests.agreement.schema import places, schema, schema_text
from tests.doubles.sides import run_of
from tests.places import GOLDEN, ROOT, Reviewed
from traces.errors import NotAResult

Json = dict[str, Any]
PUBLISHED = [
    (Result, ROOT / "docs" / "result.schema.json", GOLDEN / "keys.txt"),
    (Compared, ROOT / "docs" / "comparison.schema.json", GOLDEN / "comparison_keys.txt"),
    (ComparedFiles, ROOT / "docs" / "files_comparison.schema.json", GOLDEN / "files_comparison_keys.txt"),
    (Merged, ROOT / "docs" / "run.schema.json", GOLDEN / "run_keys.txt"),
    (Layouts, ROOT / "docs" / "layouts.schema.json", GOLDEN / "layouts_keys.txt"),
    (Brief, ROOT / "docs" / "brief.schema.json", GOLDEN / "brief_keys.txt"),
    (BriefRun, ROOT / "docs" / "brief_run.schema.json", GOLDEN / "brief_run_keys.txt"),
]
WRONG: tuple[Any, ...] = (None, "x", -1, 3, 2.5, True, [], [None], {}, {"x": "y"})


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Json:
    trace = run_of(tmp_path_factory.mktemp("contract") / "run.sqlite")
    return diagnoser.analyze(trace, ask_megatron=False).to_dict()


@pytest.mark.parametrize(("kind", "published", "keys"), PUBLISHED)
def test_no_public_key_goes(
    kind: type[Struct], published: Path, keys: Path, request: pytest.FixtureRequest
) -> None:
    """Keys may be added: `--update-golden` adds them to those that must stay."""
    now, stay = set(places(kind)), set(keys.read_text(encoding="utf-8").split())
    if request.config.getoption("--update-golden"):
        keys.write_text("".join(f"{one}\n" for one in sorted(stay | now)), encoding="utf-8")
    assert stay - now == set()
    assert len(stay) > 20


@pytest.mark.parametrize(("kind", "published", "keys"), PUBLISHED)
def test_the_schema_that_is_published_is_that_of_the_types(
    kind: type[Struct], published: Path, keys: Path, reviewed: Reviewed
) -> None:
    assert schema_text(kind) == reviewed(published, schema_text(kind))
    jsonschema.Draft202012Validator.check_schema(schema(kind))


def test_a_document_keeps_the_schema_and_comes_back_as_the_same_document(document: Json) -> None:
    jsonschema.Draft202012Validator(schema(Result)).validate(document)
    assert diagnoser.diagnosis.Diagnosis(decode(document, Result)).to_dict() == document


def spots(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of a document, of long lists the first two entries."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, one in entries:
        yield from spots(one, (*path, key))


def changed(part: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The document with another value at that place; what is not on the way to it is shared."""
    if not path:
        return value
    copied = copy.copy(part)
    copied[path[0]] = changed(part[path[0]], path[1:], value)
    return copied


def reads(document: Json) -> bool:
    try:
        decode(document, Result)
    except NotAResult:
        return False
    return True


def test_what_a_reader_takes_is_what_the_schema_takes(document: Json) -> None:
    """A wrong value anywhere, by a whole implementation of JSON Schema."""
    whole = jsonschema.Draft202012Validator(schema(Result))
    small = {**document, **{key: document[key][:1] for key in ("missing", "fixes", "refused")}}
    refused = 0
    for place, path in enumerate(spots(small)):
        value = WRONG[place % len(WRONG)]
        wrong = changed(small, path, value)
        assert reads(wrong) == whole.is_valid(wrong), (path, value)
        refused += not reads(wrong)
    assert refused > 100
